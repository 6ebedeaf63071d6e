// The attributes of vhlo, by their codes.
#include "stablehlo/bytecode/tables.h"
#include "stablehlo/mlir/print.h"

namespace kiln::stablehlo {
namespace {

// Enumerations; invalid values are empty.
struct EnumRow {
  uint64_t code;
  std::string_view name;
  std::string_view values[6];
};
constexpr EnumRow kEnums[] = {
    {3, "stablehlo.comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {4, "stablehlo.comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {5,
     "stablehlo.custom_call_api_version",
     {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
      "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"}},
    {7, "stablehlo.fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {11, "stablehlo.precision", {"DEFAULT", "HIGH", "HIGHEST"}},
    {12, "stablehlo.rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {13, "stablehlo.rng_distribution", {"", "UNIFORM", "NORMAL"}},
    {16, "stablehlo.transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {19, "stablehlo.result_accuracy_mode", {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

enum Code : uint64_t {
  kArray = 1,
  kBoolean = 2,
  kDictionary = 6,
  kFloat = 8,
  kInteger = 9,
  kAlias = 10,
  kString = 14,
  kTensor = 15,
  kType = 17,
  kTypeExtensions = 18,
  kResultAccuracy = 20,
  kSubAxisInfo = 21,
  kAxisRef = 22,
  kReplicaGroupMeshAxes = 23,
  kMeshAxis = 24,
  kMesh = 25,
};

}  // namespace

Result<const mlir::Attribute*> Tables::ReadVhloAttribute(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t code, input.VarInt("the code of an attribute"));
  for (size_t i = 0; i < std::size(kEnums); ++i) {
    if (kEnums[i].code == code) return ReadVhloEnum(input, i);
  }
  switch (code) {
    case kArray:
      return ReadArray(input);
    case kBoolean: {
      Attribute attribute{.kind = AttributeKind::kBool};
      KILN_ASSIGN_OR_RETURN(uint64_t value, input.Index(2, "a boolean"));
      attribute.boolean = value == 1;
      return Make(std::move(attribute), at);
    }
    case kDictionary:
      return ReadDictionary(input);
    case kFloat:
    case kInteger: {
      KILN_ASSIGN_OR_RETURN(const Attribute* number, ReadNumber(input));
      if (number->is(AttributeKind::kFloat) == (code == kFloat)) return number;
      return FailAtByte(at, "a number of another type",
                        code == kFloat ? "a float's type" : "an integer's type");
    }
    case kAlias:
      return ReadAlias(input);
    case kString: {
      KILN_ASSIGN_OR_RETURN(std::string_view text, ReadString(input));
      return MakeText(AttributeKind::kString, text, at);
    }
    case kTensor:
      return ReadElements(input);
    case kType:
      return ReadTypeAttribute(input);
    case kTypeExtensions: {
      Attribute record{.kind = AttributeKind::kRecord, .name = module_.Name("stablehlo.bounds")};
      KILN_ASSIGN_OR_RETURN(std::vector<int64_t> bounds, ReadInts(input));
      KILN_ASSIGN_OR_RETURN(const Attribute* list, MakeInts(bounds, at));
      record.fields.push_back({module_.Name("bounds"), list});
      return Make(std::move(record), at);
    }
    case kResultAccuracy:
      return ReadResultAccuracy(input);
    case kSubAxisInfo:
    case kAxisRef:
    case kReplicaGroupMeshAxes:
    case kMeshAxis:
    case kMesh:
      return ReadMesh(input, code);
    default:
      return FailAtByte(at, Cat("the code ", code), "one of vhlo's attributes");
  }
}

Result<const mlir::Attribute*> Tables::ReadVhloEnum(Input& input, size_t which) {
  const EnumRow& row = kEnums[which];
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t value, input.VarInt("the value of an enumeration"));
  if (value >= std::size(row.values) || row.values[value].empty()) {
    return FailAtByte(at, Cat("the value ", value), Cat("one of ", row.name));
  }
  return MakeEnum(row.name, row.values[value], at);
}

Result<const mlir::Attribute*> Tables::ReadAlias(Input& input) {
  const size_t at = input.offset();
  Attribute record{.kind = AttributeKind::kRecord};
  record.name = module_.Name("stablehlo.output_operand_alias");
  for (std::string_view name : {"output_tuple_indices", "operand_index", "operand_tuple_indices"}) {
    const Attribute* value = nullptr;
    if (name == "operand_index") {
      KILN_ASSIGN_OR_RETURN(int64_t index, input.SignedVarInt("the index of an operand"));
      KILN_ASSIGN_OR_RETURN(value, MakeInt(index, 64, at));
    } else {
      KILN_ASSIGN_OR_RETURN(std::vector<int64_t> indices, ReadInts(input));
      KILN_ASSIGN_OR_RETURN(value, MakeInts(indices, at));
    }
    mlir::Insert(record.fields, module_.Name(name), value);
  }
  return Make(std::move(record), at);
}

Result<const mlir::Attribute*> Tables::ReadResultAccuracy(Input& input) {
  const size_t at = input.offset();
  Attribute record{.kind = AttributeKind::kRecord};
  record.name = module_.Name("stablehlo.result_accuracy");
  for (std::string_view name : {"atol", "rtol"}) {
    Attribute number{.kind = AttributeKind::kFloat};
    KILN_ASSIGN_OR_RETURN(number.type, GetFloat(mlir::FloatKind::kF64));
    KILN_ASSIGN_OR_RETURN(number.number, ReadDouble(input));
    KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(number), at));
    mlir::Insert(record.fields, module_.Name(name), made);
  }
  KILN_ASSIGN_OR_RETURN(int64_t ulps, input.SignedVarInt("a number of ULPs"));
  KILN_ASSIGN_OR_RETURN(const Attribute* made, MakeInt(ulps, 64, at));
  mlir::Insert(record.fields, module_.Name("ulps"), made);
  const size_t mode_at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Attribute* mode, ReadAttribute(input));
  if (!mode->is(AttributeKind::kEnum) || mode->name != "stablehlo.result_accuracy_mode") {
    return FailAtByte(mode_at, "another attribute", "a mode of accuracy");
  }
  mlir::Insert(record.fields, module_.Name("mode"), mode);
  return Make(std::move(record), at);
}

// Replica groups by the axes of a mesh, kept as text in the tree.
Result<const mlir::Attribute*> Tables::ReadMesh(Input& input, uint64_t code) {
  const size_t at = input.offset();
  std::string text;
  switch (code) {
    case kSubAxisInfo: {
      KILN_ASSIGN_OR_RETURN(int64_t before, input.SignedVarInt("a size"));
      KILN_ASSIGN_OR_RETURN(int64_t size, input.SignedVarInt("a size"));
      text = Cat("(", before, ")", size);
      break;
    }
    case kAxisRef: {
      text = "#stablehlo.axis_ref<name = ";
      KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      KILN_ASSIGN_OR_RETURN(uint64_t has_info, input.Index(2, "a boolean"));
      if (has_info == 0) break;
      text += ", sub_axis_info = ";
      KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      break;
    }
    case kReplicaGroupMeshAxes: {
      text = "#stablehlo.replica_group_mesh_axes<mesh = ";
      Input ahead = input;
      KILN_ASSIGN_OR_RETURN(const Attribute* mesh, ReadAttribute(ahead));
      if (mesh->is(AttributeKind::kString)) {
        KILN_RETURN_IF_ERROR(Spend(mesh->text.size(), at));
        text += "@" + mesh->text;
        input = ahead;
      } else {
        KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      }
      text += ", axes = ";
      KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      break;
    }
    case kMeshAxis: {
      text = "#stablehlo.mesh_axis<name = ";
      KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      KILN_ASSIGN_OR_RETURN(int64_t size, input.SignedVarInt("the size of an axis"));
      text += Cat(", size = ", size);
      break;
    }
    default: {
      text = "#stablehlo.mesh<axes = ";
      KILN_RETURN_IF_ERROR(AppendMeshPart(input, text));
      const size_t ids_at = input.offset();
      KILN_ASSIGN_OR_RETURN(const Attribute* ids, ReadOptionalAttribute(input));
      if (ids) {
        text += ", device_ids = ";
        KILN_RETURN_IF_ERROR(AppendMeshPart(*ids, ids_at, text));
      }
      break;
    }
  }
  if (code != kSubAxisInfo) text += ">";
  return MakeText(AttributeKind::kOpaque, text, at);
}

Status Tables::AppendMeshPart(Input& input, std::string& text) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Attribute* part, ReadAttribute(input));
  return AppendMeshPart(*part, at, text);
}

// A name, a number or a list of numbers, text, and arrays of these.
Status Tables::AppendMeshPart(const Attribute& part, size_t offset, std::string& text) {
  // The maximal printed sizes of a character of a name, and of an integer.
  constexpr size_t kMostDigits = 24;
  switch (part.kind) {
    case AttributeKind::kOpaque:
      KILN_RETURN_IF_ERROR(Spend(part.text.size(), offset));
      text += part.text;
      return OkStatus();
    case AttributeKind::kString:
    case AttributeKind::kInteger:
    case AttributeKind::kDenseArray:
    case AttributeKind::kElements:
      KILN_RETURN_IF_ERROR(
          Spend(kMostDigits * (part.text.size() + part.elements().size()), offset));
      text += mlir::ToText(part);
      return OkStatus();
    case AttributeKind::kArray:
      text += "[";
      for (const Attribute* item : part.items) {
        if (text.back() != '[') text += ", ";
        if (item->is(AttributeKind::kArray)) {
          return FailAtByte(offset, "an array in an array", "a part of a mesh");
        }
        KILN_RETURN_IF_ERROR(Spend(1, offset));
        KILN_RETURN_IF_ERROR(AppendMeshPart(*item, offset, text));
      }
      text += "]";
      return OkStatus();
    default:
      return FailAtByte(offset, "another attribute", "a part of a mesh");
  }
}

}  // namespace kiln::stablehlo
