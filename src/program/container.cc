#include "program/container.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"
#include "base/integers.h"
#include "base/strings.h"

namespace kiln::program {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "KILNPRG\n";
constexpr size_t kSections = 3;
constexpr const char* kNames[kSections] = {"description", "code", "constants"};

struct Section {
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;  // from its offset to that of the next one, or to the end
};

// The first bytes of a file.
struct Header {
  char magic[8];
  uint64_t version;
  uint64_t file_bytes;
  uint64_t checksum;  // of the rest of the header
  Section sections[kSections];
  uint64_t unused[3];  // 0
};
static_assert(sizeof(Header) == 128);
constexpr size_t kChecked = offsetof(Header, sections);

// The end of a section is that of the one behind it, or of the file.
uint64_t EndOf(const Header& header, size_t section) {
  return section + 1 < kSections ? header.sections[section + 1].offset : header.file_bytes;
}

// Sets offsets, and the size of the file, by the sizes of the sections. An empty section takes no
// room.
void Place(Header& header) {
  constexpr size_t kAlignments[kSections] = {1, kPieceAlignment, kPageAlignment};
  uint64_t end = sizeof(Header);
  for (size_t i = 0; i < kSections; ++i) {
    Section& section = header.sections[i];
    section.offset = section.bytes == 0 ? end : RoundUp(end, kAlignments[i]);
    end = section.offset + section.bytes;
  }
  header.file_bytes = end;
}

// Whether the sections are where their sizes put them, and make up the file.
bool IsPlaced(const Header& header) {
  Header placed = header;
  for (const Section& section : header.sections) {
    // The sum of the sizes could be too large for its type.
    if (section.bytes > header.file_bytes) return false;
  }
  Place(placed);
  for (size_t i = 0; i < kSections; ++i) {
    if (header.sections[i].offset != placed.sections[i].offset) return false;
  }
  return header.file_bytes == placed.file_bytes;
}

uint64_t ChecksumOf(std::string_view bytes) {
  Checksum sum;
  sum.Update(bytes);
  return sum.Finish();
}

std::string_view Checked(const Header& header) {
  return {reinterpret_cast<const char*>(&header) + kChecked, sizeof(header) - kChecked};
}

std::string_view Zeros(size_t count) {
  static constexpr char kZeros[kPageAlignment] = {};
  return {kZeros, count};
}

size_t BytesOfPieces(const std::vector<std::string_view>& pieces) {
  size_t bytes = 0;
  for (std::string_view piece : pieces) bytes = RoundUp(bytes, kPieceAlignment) + piece.size();
  return bytes;
}

// Without checksums.
Header HeaderOf(const NewContainer& container) {
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kContainerVersion;
  header.sections[0].bytes = container.description.size();
  header.sections[1].bytes = BytesOfPieces(container.code);
  header.sections[2].bytes = BytesOfPieces(container.constants);
  Place(header);
  return header;
}

template <typename... Parts>
Status Damaged(const Parts&... what) {
  return InvalidArgument("the saved program is damaged: ", what...);
}

Status Differs(std::string_view what, uint64_t is, uint64_t should_be) {
  return Damaged("the checksum of its ", what, " is ", HexText(is), ", and not ",
                 HexText(should_be));
}

}  // namespace

void Checksum::Mix(const char* bytes, size_t blocks) {
  constexpr uint64_t kFactor = 0x9fb21c651e98df25u;
  uint64_t lanes[kLanes];
  std::memcpy(lanes, lanes_, sizeof(lanes));
  for (; blocks > 0; --blocks, bytes += kBlock) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes, kBlock);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = std::rotl(lanes[i] ^ words[i], 27) * kFactor;
  }
  std::memcpy(lanes_, lanes, sizeof(lanes));
}

void Checksum::Update(std::string_view bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  if (waiting_ > 0) {
    const size_t taken = std::min(bytes.size(), kBlock - waiting_);
    std::memcpy(block_ + waiting_, bytes.data(), taken);
    bytes.remove_prefix(taken);
    waiting_ += taken;
    if (waiting_ < kBlock) return;
    Mix(block_, 1);
    waiting_ = 0;
  }
  Mix(bytes.data(), bytes.size() / kBlock);
  waiting_ = bytes.size() % kBlock;
  if (waiting_ > 0) std::memcpy(block_, bytes.data() + bytes.size() - waiting_, waiting_);
}

uint64_t Checksum::Finish() {
  constexpr uint64_t kFirst = 0x9fb21c651e98df25u, kSecond = 0xc2b2ae3d27d4eb4fu;
  if (waiting_ > 0) {
    std::memset(block_ + waiting_, 0, kBlock - waiting_);
    Mix(block_, 1);
  }
  uint64_t sum = bytes_;
  for (uint64_t lane : lanes_) sum = std::rotl(sum ^ ((lane ^ lane >> 32) * kFirst), 27) * kSecond;
  return sum ^ sum >> 29;
}

uint64_t BytesOf(const NewContainer& container) { return HeaderOf(container).file_bytes; }

Status WriteContainer(const NewContainer& container,
                      const std::function<Status(std::string_view)>& sink) {
  Header header = HeaderOf(container);
  const std::vector<std::string_view> description = {container.description};
  const std::vector<std::string_view>* sections[kSections] = {&description, &container.code,
                                                              &container.constants};
  // The parts of section i, with what is between them.
  auto parts = [&](size_t i, const auto& part) -> Status {
    uint64_t at = 0;
    for (std::string_view piece : *sections[i]) {
      KILN_RETURN_IF_ERROR(part(Zeros(RoundUp(at, kPieceAlignment) - at)));
      KILN_RETURN_IF_ERROR(part(piece));
      at = RoundUp(at, kPieceAlignment) + piece.size();
    }
    return part(Zeros(EndOf(header, i) - header.sections[i].offset - at));
  };
  for (size_t i = 0; i < kSections; ++i) {
    Checksum sum;
    KILN_RETURN_IF_ERROR(parts(i, [&](std::string_view part) {
      sum.Update(part);
      return OkStatus();
    }));
    header.sections[i].checksum = sum.Finish();
  }
  header.checksum = ChecksumOf(Checked(header));
  KILN_RETURN_IF_ERROR(sink({reinterpret_cast<const char*>(&header), sizeof(header)}));
  for (size_t i = 0; i < kSections; ++i) KILN_RETURN_IF_ERROR(parts(i, sink));
  return OkStatus();
}

Result<OpenContainer> ReadContainer(std::string_view file) {
  if (!file.starts_with(kMagic)) return InvalidArgument("the bytes are no saved program");
  Header header = {};
  std::memcpy(&header, file.data(), std::min(file.size(), sizeof(header)));
  if (file.size() < kChecked) return Damaged("it ends in its header");
  if (header.version != kContainerVersion) {
    return FailedPrecondition("the program was saved in version ", header.version,
                              " of the format, and this is version ", kContainerVersion);
  }
  if (header.file_bytes != file.size()) {
    return Damaged("it has ", file.size(), " of ", header.file_bytes, " bytes");
  }
  if (file.size() < sizeof(header)) return Damaged("it ends in its header");
  if (const uint64_t sum = ChecksumOf(Checked(header)); sum != header.checksum) {
    return Differs("header", sum, header.checksum);
  }
  if (!IsPlaced(header)) return Damaged("its sections do not fit");
  std::string_view sections[kSections];
  for (size_t i = 0; i < kSections; ++i) {
    const Section& section = header.sections[i];
    const uint64_t sum = ChecksumOf(file.substr(section.offset, EndOf(header, i) - section.offset));
    if (sum != section.checksum) return Differs(kNames[i], sum, section.checksum);
    sections[i] = file.substr(section.offset, section.bytes);
  }
  return OpenContainer{sections[0], sections[1], sections[2]};
}

void SealContainer(std::string& file) {
  Header header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.file_bytes = file.size();
  for (size_t i = 0; i < kSections; ++i) {
    const uint64_t offset = header.sections[i].offset, end = EndOf(header, i);
    if (offset > end || end > file.size()) continue;
    header.sections[i].checksum = ChecksumOf(std::string_view(file).substr(offset, end - offset));
  }
  header.checksum = ChecksumOf(Checked(header));
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace kiln::program
