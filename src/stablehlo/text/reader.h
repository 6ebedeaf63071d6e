// The reader of MLIR text: a recursive descent over the scanner that makes the tree. Private; users
// call ReadText.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stablehlo/mlir/operation.h"
#include "stablehlo/text/scanner.h"
#include "stablehlo/text/text.h"

namespace kiln::stablehlo {

// The bits of a number as a value of an integer or float type; nullopt where the type does not hold
// it. Of floats, hexadecimal digits are the bits, and a decimal number has a point.
std::optional<uint64_t> BitsOf(const Number& number, const mlir::Type& type);

class Reader {
 public:
  Reader(std::string_view text, const TextOptions& options)
      : scanner_(text, options.first_line), module_(std::make_unique<mlir::Module>()) {}

  Result<std::unique_ptr<mlir::Module>> Read();

 private:
  using Attribute = mlir::Attribute;
  using AttributeKind = mlir::AttributeKind;
  using AttributeList = mlir::AttributeList;
  using Operation = mlir::Operation;
  using Type = mlir::Type;
  using Value = mlir::Value;
  template <typename T>
  using List = std::vector<T>;

  // The scope of value names in a region. Lookup continues in enclosing regions, up to an isolated
  // one, which has no outer scope.
  struct Scope {
    const Scope* outer = nullptr;
    std::unordered_map<std::string_view, List<Value*>> names;
  };
  // An argument of a region, declared outside of it.
  struct Argument {
    std::string_view name;
    const Type* type = nullptr;
    size_t position = 0;
    const mlir::Source* source = nullptr;
  };
  // The definition of an alias ("#map", "!t", "#loc3"), which may come after its uses.
  struct Definition {
    size_t position = 0;  // of the value
    size_t end = 0;       // behind it, once it is read
    bool reading = false;
    const Attribute* attribute = nullptr;
    const Type* type = nullptr;
    bool is_location = false;
    mlir::Source source;
  };
  // One level of recursion.
  class Nesting {
   public:
    explicit Nesting(Reader& reader) : reader_(reader) { ++reader_.depth_; }
    ~Nesting() { --reader_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Status Check() const;

   private:
    Reader& reader_;
  };

  // reader.cc: everything outside of modules.
  void FindDefinitions();
  Status ReadDefinition();
  Result<const Definition*> Define(char sigil, std::string_view name, size_t position);
  Status ReadResources();
  Status ReadResourceGroup(bool keep);
  // The contents after "loc".
  Result<mlir::Source> ReadLocation();
  Status ReadLocationInside(mlir::Source& source, int64_t depth);
  Status ReadPlace(mlir::Source& source, std::string_view file);
  // "loc(...)", or nothing: null if empty.
  Result<const mlir::Source*> ReadOptionalLocation();

  // operations.cc: operations, regions and values.
  Status ReadOperation(mlir::Block* block, Scope& scope);
  Status ReadGeneric(Operation** made, mlir::Block* block, Scope& scope);
  Status ReadPretty(Operation** made, mlir::Block* block, Scope& scope);
  Status ReadRegion(Operation* operation, const Scope* outer, std::span<const Argument> arguments);
  Status ReadBlock(mlir::Region* region, mlir::Block* block, Scope& scope);
  Status Bind(Scope& scope, std::string_view name, List<Value*> values, size_t position);
  Result<Value*> ReadOperand(const Scope& scope);
  // Operands separated by commas; a comma before something else is not consumed.
  Status ReadOperands(Operation* operation, const Scope& scope);
  Status AddResults(Operation* operation, const List<const Type*>& types);
  Status CheckOperands(const Operation& operation, const List<const Type*>& types, size_t position);

  // functions.cc: modules and functions.
  Status ReadModule(Operation* operation, Scope& scope);
  Status ReadFunction(Operation* operation, Scope& scope);
  Status ReadParameters(List<Argument>& arguments, List<const Type*>& types,
                        List<const Attribute*>& attributes, bool* named);
  Status ReadFunctionResults(List<const Type*>& types, List<const Attribute*>& attributes);
  Status SetDictionaries(Operation* operation, std::string_view name,
                         List<const Attribute*> dictionaries);

  // forms.cc: pretty forms by their descriptions, and the named parts.
  Status ReadForm(Operation* operation, std::string_view form, Scope& scope);
  bool LookingAtParts(std::span<const std::string_view> parts);
  Status ReadAttributeOf(Operation* operation, std::string_view name, std::string_view kind);
  Status ReadTypesOf(Operation* operation, std::string_view style);
  Status SetTypes(Operation* operation, std::string_view style, const List<const Type*>& types,
                  size_t position);

  // parts.cc: those parts.
  Status ReadPart(Operation* operation, std::string_view part, Scope& scope);
  Status ReadConstant(Operation* operation, Scope& scope);
  Status ReadReduce(Operation* operation, Scope& scope);
  Status ReadReduceRegion(Operation* operation, Scope& scope);
  Status MakeReduceRegion(Operation* operation, std::string_view name);
  Status ReadWhile(Operation* operation, Scope& scope);
  Status ReadScan(Operation* operation, Scope& scope);
  Status ReadValue(Operation* operation, Scope& scope);
  Status ReadRegions(Operation* operation, Scope& scope);
  Status ReadSlices(Operation* operation, Scope& scope);
  Status ReadFormat(Operation* operation, Scope& scope);
  Status ReadBarrier(Operation* operation, Scope& scope);
  Status ReadDotDimensions(Operation* operation, Scope& scope);
  Status ReadPrecision(Operation* operation, Scope& scope);
  Status ReadConvolution(Operation* operation, Scope& scope);
  Status ReadWindow(Operation* operation, Scope& scope);
  Status ReadWindowPadding(Operation* operation, size_t position);

  // types.cc
  bool LookingAtType();
  Result<const Type*> ReadType();
  Result<const Type*> ReadNamedType();    // "!..."
  Result<const Type*> ReadTensor();       // after "tensor<"
  Status ReadTensorEncoding(Type& type);  // after the comma
  Result<const Type*> ReadQuantized();    // after "!quant.uniform<"
  Status ReadScales(mlir::Quantization& quantization, size_t depth);
  Result<List<const Type*>> ReadTypeList(std::string_view close);  // up to the bracket
  Result<List<const Type*>> ReadResultTypes();                     // after "->"
  Result<const Type*> GetType(Type type, size_t position);
  Result<const Type*> GetInteger(int64_t width);
  Result<const Type*> GetFloat(mlir::FloatKind kind);

  // attributes.cc
  Result<const Attribute*> ReadAttribute();
  Result<const Attribute*> ReadNumberAttribute();
  Result<const Attribute*> ReadWordAttribute(std::string_view word);
  Result<const Attribute*> ReadHashAttribute();
  Result<const Attribute*> ReadDenseArray();  // after "array"
  Result<const Attribute*> ReadSymbolAttribute();
  // Adds the entries of "{...}" to the list.
  Status ReadDictionary(AttributeList& list);
  Result<const Attribute*> Make(Attribute attribute, size_t position);
  Result<const Attribute*> MakeNumber(const Number& number, const Type* type);
  Result<const Attribute*> MakeInt(int64_t value, int64_t width);
  Result<const Attribute*> MakeInts(const List<int64_t>& values);
  Result<const Attribute*> MakeText(AttributeKind kind, std::string text);
  // The text from `begin` to the last token's end, verbatim.
  Result<const Attribute*> MakeOpaque(size_t begin);
  Status Set(Operation* operation, std::string_view name, const Attribute* value, size_t position);
  Status SetInts(Operation* operation, std::string_view name, const List<int64_t>& values,
                 size_t position);
  Result<List<int64_t>> ReadInts();  // "[1, ?]", where "?" is kDynamic

  // records.cc: attributes of the dialects.
  Result<const Attribute*> ReadEnum(std::string_view name);    // the value alone
  Result<const Attribute*> ReadRecord(std::string_view name);  // "<...>"
  Result<const Attribute*> ReadRecordField(std::string_view kind);
  Result<const Attribute*> ReadConvDimensions();  // "[b, 0, f]x[0, i, o]->[b, 0, f]"
  Result<const Attribute*> ReadBounds();          // "<4, ?>"
  // Fills in missing fields.
  Result<const Attribute*> FinishRecord(Attribute record, size_t position);

  // elements.cc: after "dense" and "dense_resource".
  Result<const Attribute*> ReadElements();
  Result<const Attribute*> ReadResource();
  Result<const Type*> ReadElementsType();
  Status ReadElementList(const Type& tensor, size_t dimension, std::string& bytes);
  Status ReadElement(const Type& type, std::string& bytes);
  Status ReadHexElements(const Type& tensor, Attribute& attribute);

  Scanner scanner_;
  std::unique_ptr<mlir::Module> module_;
  std::unordered_map<std::string_view, Definition> definitions_;  // by name, with its sigil
  std::unordered_map<std::string, std::string_view> resources_;   // hexadecimal digits, by name
  List<size_t> resource_positions_;
  bool resources_read_ = false;
  int64_t depth_ = 0;
};

}  // namespace kiln::stablehlo
