#include "interp/grid.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::interp {
namespace {

// That are under way.
constexpr size_t kMostMessages = 1024;
constexpr size_t kMostRequests = 1024;

std::string OpName(const ir::Instruction& op) {
  return Cat(OpcodeName(op.opcode()), " '", op.name(), "'");
}

}  // namespace

int64_t Process::replicas() const { return grid ? grid->replicas() : 1; }
int64_t Process::partitions() const { return grid ? grid->partitions() : 1; }
std::string Process::Name() const { return Cat("process (", replica(), ", ", partition(), ")"); }

Status Grid::Run(const std::function<Status(const Process& process)>& program) {
  KILN_RETURN_IF_ERROR(turns_.Run([&](int64_t number) {
    const Process process{this, number};
    Status status = program(process);
    // A failure caused by another process is reported there.
    if (status.ok() || !turns_.failure().ok()) return status;
    return status.WithContext(process.Name());
  }));
  if (messages_.empty()) return OkStatus();
  const Message& message = messages_.front();
  return FailedPrecondition("what ", NameOf(message.from), " has sent by channel ", message.channel,
                            " was not taken");
}

Result<std::shared_ptr<const Grid::Brought>> Grid::Meet(const Process& process,
                                                        const ir::Instruction& op,
                                                        const std::vector<int64_t>& members,
                                                        std::vector<Value> values) {
  const auto place =
      static_cast<size_t>(std::ranges::find(members, process.number) - members.begin());
  Occasion occasion{op.opcode(), op.attributes().Int(Attr::kChannelId), members};
  std::shared_ptr<Meeting>& open = open_[occasion];
  if (!open) {
    open = std::make_shared<Meeting>();
    open->brought.resize(members.size());
    open->here.resize(members.size());
    open->missing = std::ssize(members);
    open->first = static_cast<int64_t>(place);
  }
  const std::shared_ptr<Meeting> meeting = open;
  const std::vector<Value>& first = meeting->brought[static_cast<size_t>(meeting->first)];
  if (meeting->missing < std::ssize(members) &&
      !std::ranges::equal(first, values, [](const Value& x, const Value& y) {
        return x.array().shape().SameTypeAndDimensions(y.array().shape());
      })) {
    return InvalidArgument(OpName(op), ": the operands are of other shapes than those of ",
                           NameOf(members[static_cast<size_t>(meeting->first)]));
  }
  meeting->brought[place] = std::move(values);
  meeting->here[place] = true;
  if (--meeting->missing == 0) {
    open_.erase(occasion);
  } else {
    auto missing = [&] {
      std::vector<std::string> names;
      for (size_t m = 0; m < members.size(); ++m) {
        if (!meeting->here[m]) names.push_back(NameOf(members[m]));
      }
      return Cat(process.Name(), " in ", OpName(op), " for ", Join(names, ", "));
    };
    KILN_RETURN_IF_ERROR(turns_.Wait(
        process.number, [&] { return meeting->missing == 0; }, missing));
  }
  return std::shared_ptr<const Brought>(meeting, &meeting->brought);
}

void Grid::Deliver() {
  std::erase_if(asking_, [&](uint32_t number) {
    Request& request = requests_.at(number);
    auto message = std::ranges::find_if(messages_, [&](const Message& m) {
      return m.channel == request.channel && (!m.to || *m.to == request.to) &&
             (!request.from || *request.from == m.from);
    });
    if (message == messages_.end()) return false;
    request.is_filled = true;
    request.shape = std::move(message->shape);
    request.value = std::move(message->value);
    messages_.erase(message);
    return true;
  });
}

Status Grid::Send(const Process& process, const ir::Instruction& op, Message message) {
  auto full = [&] {
    return Cat(process.Name(), " in ", OpName(op), ", as ", kMostMessages,
               " messages are not taken");
  };
  KILN_RETURN_IF_ERROR(turns_.Wait(
      process.number, [&] { return messages_.size() < kMostMessages; }, full));
  messages_.push_back(std::move(message));
  Deliver();
  return OkStatus();
}

Result<uint32_t> Grid::Ask(const ir::Instruction& op, Request request) {
  if (requests_.size() >= kMostRequests) {
    return ResourceExhausted(OpName(op), ": more than ", kMostRequests,
                             " messages are asked for and not taken");
  }
  const uint32_t number = next_request_++;
  if (!request.is_filled) asking_.push_back(number);
  requests_[number] = std::move(request);
  Deliver();
  return number;
}

Result<Request> Grid::Receive(const Process& process, const ir::Instruction& op, uint32_t number) {
  auto found = requests_.find(number);
  if (found == requests_.end() || found->second.to != process.number) {
    return InvalidArgument(OpName(op), ": its operand is of no recv, or of one that is done");
  }
  const Request& request = found->second;
  auto unfilled = [&] {
    return Cat(process.Name(), " in ", OpName(op), " for channel ", request.channel);
  };
  KILN_RETURN_IF_ERROR(turns_.Wait(
      process.number, [&] { return request.is_filled; }, unfilled));
  return std::move(requests_.extract(number).mapped());
}

const ir::Computation* Grid::NextOfInfeed() {
  if (infeed_.empty()) return nullptr;
  const ir::Computation* next = infeed_.front();
  infeed_.pop_front();
  return next;
}

}  // namespace kiln::interp
