#include "ops/inference.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr int64_t kMax = INT64_MAX;
const ElementType F32 = ElementType::kF32, F64 = ElementType::kF64, S32 = ElementType::kS32,
                  Pred = ElementType::kPred;

Dimension Sym(std::string_view name) { return *Dimension::Symbol(name); }
Shape F(std::vector<Dimension> dims) { return Shape(F32, std::move(dims)); }
Shape Scalar(ElementType type) { return Shape::Scalar(type); }

struct Call {
  Opcode opcode;
  std::vector<Shape> operands;
  Attributes attributes = {};
  std::optional<Shape> declared = std::nullopt;
  std::vector<ProgramShape> called = {};

  Result<Shape> Infer() const {
    std::vector<const Shape*> pointers;
    for (const Shape& s : operands) pointers.push_back(&s);
    return InferShape({opcode, pointers, attributes, declared ? &*declared : nullptr, called});
  }
  // The shape's text, or the error's.
  std::string Text() const {
    Result<Shape> result = Infer();
    return result.ok() ? result->ToString() : result.status().ToString();
  }
};

void ExpectError(const Call& call, std::string_view part, Code code = Code::kInvalidArgument) {
  Result<Shape> result = call.Infer();
  ASSERT_FALSE(result.ok()) << result->ToString();
  EXPECT_EQ(result.status().code(), code) << result.status().ToString();
  EXPECT_NE(result.status().message().find(part), std::string_view::npos)
      << result.status().ToString();
  // Every message names the op.
  EXPECT_TRUE(StartsWith(result.status().message(), OpcodeName(call.opcode)))
      << result.status().ToString();
}

TEST(Inference, Elementwise) {
  Shape a = F({2, 3});
  EXPECT_EQ((Call{Opcode::kAdd, {a, a}}.Text()), "f32[2,3]");
  EXPECT_EQ(
      (Call{Opcode::kAdd, {a, F({3, 2})}}.Text()),
      "INVALID_ARGUMENT: add: operands have shapes f32[2,3] and f32[3,2]; they must be equal");
  ExpectError({Opcode::kAdd, {a}}, "has 1 operand; expected 2");
  ExpectError({Opcode::kErf, {Shape(S32, {4})}},
              "operand has shape s32[4]; the element type must be a float type");
  ExpectError({Opcode::kNot, {a}}, "pred or an integer type");
  ExpectError({Opcode::kAbs, {Shape::Tuple({a})}}, "must be an array");
  EXPECT_EQ((Call{Opcode::kIsFinite, {a}}.Text()), "pred[2,3]");
  EXPECT_EQ((Call{Opcode::kConvert, {a}, {}, Scalar(F64)}.Text()), "f64[2,3]");
  ExpectError({Opcode::kConvert, {a}}, "the result's shape is missing");
  Attributes lt({{Attr::kDirection, Direction::kLt}});
  EXPECT_EQ((Call{Opcode::kCompare, {a, a}, lt}.Text()), "pred[2,3]");
  ExpectError({Opcode::kCompare, {a, a}}, "attribute 'direction' is missing");
  ExpectError({Opcode::kAdd, {a, a}, lt}, "no attribute 'direction'");
  ExpectError({Opcode::kCompare, {a, a}, {{Attr::kDirection, int64_t{1}}}}, "must be a direction");
  Shape c(ElementType::kC64, {2});
  ExpectError({Opcode::kCompare, {c, c}, lt}, "no order LT");
  EXPECT_EQ((Call{Opcode::kClamp, {Scalar(F32), a, a}}.Text()), "f32[2,3]");
  ExpectError({Opcode::kClamp, {Scalar(F64), a, a}}, "min and max");
  EXPECT_EQ((Call{Opcode::kSelect, {Scalar(Pred), a, a}}.Text()), "f32[2,3]");
  EXPECT_EQ((Call{Opcode::kSelect, {Shape(Pred, {2, 3}), a, a}}.Text()), "f32[2,3]");
  ExpectError({Opcode::kSelect, {Shape(Pred, {3, 2}), a, a}}, "the first must be");
  ExpectError({Opcode::kSelect, {a, a, a}}, "the first must be");
  ExpectError({Opcode::kSelect, {Scalar(Pred), a, F({6})}}, "must be equal");
}

TEST(Inference, SymbolsAndBounds) {
  Shape a = F({Sym("N"), 3});
  EXPECT_EQ((Call{Opcode::kAdd, {a, a}}.Text()), "f32[N,3]");
  ExpectError({Opcode::kAdd, {a, F({Sym("M"), 3})}}, "must be equal");
  ExpectError({Opcode::kAdd, {a, F({2, 3})}}, "must be equal");
  Shape b = F({Dimension::Bounded(4)});
  EXPECT_EQ((Call{Opcode::kNegate, {b}}.Text()), "f32[<=4]");
  ExpectError({Opcode::kAdd, {b, F({4})}}, "must be equal");
  EXPECT_EQ((Call{Opcode::kTranspose, {a}, {{Attr::kDimensions, Ints{1, 0}}}}.Text()), "f32[3,N]");
  EXPECT_EQ(
      (Call{Opcode::kBroadcast, {F({Sym("N")})}, {{Attr::kDimensions, Ints{1}}}, F({2, Sym("N")})}
           .Text()),
      "f32[2,N]");
  EXPECT_EQ(
      (Call{Opcode::kReshape, {F({Sym("N"), 2, Sym("M"), 6})}, {}, F({12, Sym("M"), Sym("N")})}
           .Text()),
      "f32[12,M,N]");
  ExpectError({Opcode::kReshape, {a}, {}, F({Sym("N"), Sym("N")})}, "with the same symbols");
  ExpectError({Opcode::kReshape, {a}, {}, F({Sym("N"), 4})}, "with the same symbols");
  EXPECT_EQ(
      (Call{Opcode::kSlice, {a}, {{Attr::kSlice, std::vector<SliceDimension>{{0, -1}, {1, 3}}}}}
           .Text()),
      "f32[N,2]");
  ExpectError({Opcode::kSlice, {b}, {{Attr::kSlice, std::vector<SliceDimension>{{0, 1}}}}},
              "dimension 0 is not a constant", Code::kUnimplemented);
  EXPECT_EQ((Call{Opcode::kPad,
                  {a, Scalar(F32)},
                  {{Attr::kPadding, std::vector<PaddingDimension>{{}, {1, 1, 0}}}}}
                 .Text()),
            "f32[N,5]");
  ExpectError({Opcode::kPad,
               {b, Scalar(F32)},
               {{Attr::kPadding, std::vector<PaddingDimension>{{1, 0, 0}}}}},
              "dimension 0", Code::kUnimplemented);
  Attributes along0({{Attr::kDimensions, Ints{0}}}), along1({{Attr::kDimensions, Ints{1}}});
  EXPECT_EQ((Call{Opcode::kConcatenate, {a, a}, along1}.Text()), "f32[N,6]");
  EXPECT_EQ((Call{Opcode::kConcatenate, {a}, along0}.Text()), "f32[N,3]");
  ExpectError({Opcode::kConcatenate, {F({Sym("N")}), b}, along0}, "dimension 0",
              Code::kUnimplemented);
  EXPECT_EQ((Call{Opcode::kConcatenate, {b, F({3}), b}, along0}.Text()), "f32[<=11]");
  EXPECT_EQ((Call{Opcode::kConcatenate, {F({3}), b}, along0}.Text()), "f32[<=7]");
  EXPECT_EQ((Call{Opcode::kSetDimensionSize, {b, Scalar(S32)}, along0, F({4})}.Text()), "f32[4]");
  EXPECT_EQ((Call{Opcode::kSetDimensionSize, {b, Scalar(S32)}, along0, F({3})}.Text()), "f32[<=4]");
  Attributes contract({{Attr::kLhsContractingDims, Ints{1}}, {Attr::kRhsContractingDims, Ints{1}}});
  EXPECT_EQ((Call{Opcode::kDot, {a, F({4, 3})}, contract}.Text()), "f32[N,4]");
}

TEST(Inference, ShapeOps) {
  Shape a = F({2, 3});
  EXPECT_EQ(
      (Call{Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{1}}}, Shape(S32, {2, 3})}.Text()),
      "s32[2,3]");
  ExpectError({Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{2}}}, Shape(S32, {2, 3})},
              "0 to below 2");
  ExpectError({Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{0}}}, Shape(Pred, {2})},
              "element type");
  ExpectError({Opcode::kParameter, {}, {{Attr::kParameterNumber, kMax}}, a}, "parameter_number");
  ExpectError({Opcode::kConstant, {}, {}, F({Sym("N")})}, "must be a number");
  ExpectError({Opcode::kBroadcast, {a}, {{Attr::kDimensions, Ints{0, 0}}}, F({2, 3})}, "0 twice");
  ExpectError({Opcode::kBroadcast, {a}, {{Attr::kDimensions, Ints{0, 1}}}, F({2, 4})},
              "must be equal");
  ExpectError({Opcode::kBroadcast, {a}, {{Attr::kDimensions, Ints{0, 2}}}, F({2, 3})},
              "0 to below 2");
  EXPECT_EQ((Call{Opcode::kReshape, {a}, {}, F({6})}.Text()), "f32[6]");
  ExpectError({Opcode::kReshape, {a}, {}, F({5})}, "equally many elements");
  ExpectError({Opcode::kTranspose, {a}, {{Attr::kDimensions, Ints{0}}}}, "expected 2");
  auto slice = [&](SliceDimension s) {
    return Call{Opcode::kSlice, {F({10})}, {{Attr::kSlice, std::vector<SliceDimension>{s}}}};
  };
  EXPECT_EQ(slice({1, 10, 3}).Text(), "f32[3]");
  EXPECT_EQ(slice({4, 4, 1}).Text(), "f32[0]");
  EXPECT_EQ(slice({0, 10, kMax}).Text(), "f32[1]");
  ExpectError(slice({0, 11, 1}), "limit <= 10");
  ExpectError(slice({5, 4, 1}), "start <= limit");
  ExpectError(slice({-1, 4, 1}), "0 <= start");
  ExpectError(slice({0, 4, 0}), "at least 1");
  auto pad = [&](PaddingDimension p) {
    return Call{
        Opcode::kPad, {F({4}), Scalar(F32)}, {{Attr::kPadding, std::vector<PaddingDimension>{p}}}};
  };
  EXPECT_EQ(pad({1, 2, 1}).Text(), "f32[10]");
  EXPECT_EQ(pad({-1, -3, 0}).Text(), "f32[0]");
  ExpectError(pad({-3, -2, 0}), "leaves -1 elements");
  ExpectError(pad({0, 0, -1}), "must not be negative");
}

TEST(Inference, SizesDoNotOverflow) {
  auto pad = [&](int64_t size, PaddingDimension p) {
    return Call{Opcode::kPad,
                {Shape(Pred, {size}), Scalar(Pred)},
                {{Attr::kPadding, std::vector<PaddingDimension>{p}}}};
  };
  ExpectError(pad(4, {kMax, 1, 0}), "int64");
  ExpectError(pad(4, {0, 0, kMax}), "int64");
  ExpectError(pad(kMax, {kMax, kMax, kMax}), "int64");
  EXPECT_EQ(pad(kMax, {INT64_MIN + 1, 0, 0}).Text(), "pred[0]");
  Attributes along({{Attr::kDimensions, Ints{0}}});
  ExpectError({Opcode::kConcatenate, {Shape(Pred, {kMax}), Shape(Pred, {1})}, along}, "int64");
  ExpectError({Opcode::kDot,
               {F({1 << 30, 1}), F({1, int64_t{1} << 40})},
               {{Attr::kLhsContractingDims, Ints{1}}, {Attr::kRhsContractingDims, Ints{0}}}},
              "more bytes");
  ExpectError({Opcode::kBroadcast, {Scalar(F32)}, {{Attr::kDimensions, Ints{}}}, F({kMax, 0})},
              "more bytes");
  ExpectError({Opcode::kConvert, {Shape(Pred, {kMax / 4})}, {}, Scalar(F64)}, "more bytes");
  Shape half(Pred, {kMax / 2 + 1});
  ExpectError({Opcode::kTuple, {half, half}}, "more bytes");
}

TEST(Inference, TuplesStaySmall) {
  Shape deep = Scalar(F32);
  Status status;
  int64_t depth = 0;
  for (; status.ok() && depth < 1000; ++depth) {
    Result<Shape> next = Call{Opcode::kTuple, {deep}}.Infer();
    status = next.ok() ? OkStatus() : next.status();
    if (next.ok()) deep = *next;
  }
  EXPECT_EQ(depth, kMaxTupleDepth + 1) << status.ToString();
  Shape wide = Scalar(F32);
  for (depth = 0; depth < 60; ++depth) {
    Result<Shape> next = Call{Opcode::kTuple, {wide, wide}}.Infer();
    if (!next.ok()) break;
    wide = *next;
  }
  EXPECT_LT(depth, 20);
}

TEST(Inference, DotAndReduce) {
  Attributes batched({{Attr::kLhsBatchDims, Ints{0}},
                      {Attr::kRhsBatchDims, Ints{2}},
                      {Attr::kLhsContractingDims, Ints{2}},
                      {Attr::kRhsContractingDims, Ints{0}}});
  Shape lhs = F({5, 2, 3}), rhs = F({3, 4, 5});
  EXPECT_EQ((Call{Opcode::kDot, {lhs, rhs}, batched}.Text()), "f32[5,2,4]");
  EXPECT_EQ((Call{Opcode::kDot, {lhs, rhs}, batched, Scalar(F64)}.Text()), "f64[5,2,4]");
  ExpectError({Opcode::kDot, {lhs, rhs}, batched, Scalar(S32)}, "wider one");
  ExpectError({Opcode::kDot, {lhs, F({4, 4, 5})}, batched}, "contracting dimension 2 of lhs is 3");
  EXPECT_EQ((Call{Opcode::kDot, {F({2}), F({3})}}.Text()), "f32[2,3]");
  ExpectError({Opcode::kDot, {F({2}), F({2})}, {{Attr::kLhsContractingDims, Ints{0}}}},
              "numbers must be equal");

  ProgramShape add{{Scalar(F32), Scalar(F32)}, Scalar(F32)};
  Attributes last({{Attr::kDimensions, Ints{1}}});
  Shape a = F({2, 3});
  EXPECT_EQ((Call{Opcode::kReduce, {a, Scalar(F32)}, last, {}, {add}}.Text()), "f32[2]");
  ExpectError({Opcode::kReduce, {a, Scalar(F64)}, last, {}, {add}}, "init value 0 must be f32[]");
  ExpectError({Opcode::kReduce, {a, a, Scalar(F32)}, last, {}, {add}}, "as many init values");
  ExpectError({Opcode::kReduce, {a, Scalar(F32)}, last, {}, {}}, "calls 0 computations");
  ExpectError({Opcode::kReduce, {a, Scalar(F32)}, last, {}, {{{Scalar(F32)}, Scalar(F32)}}},
              "the computation takes (f32[])");
  ExpectError({Opcode::kReduce, {a, Scalar(F32)}, last, {}, {{add.parameters, Scalar(Pred)}}},
              "gives pred[]; expected f32[]");
  Shape both = Shape::Tuple({Scalar(F32), Scalar(S32)});
  ProgramShape pair{{Scalar(F32), Scalar(S32), Scalar(F32), Scalar(S32)}, both};
  EXPECT_EQ(
      (Call{Opcode::kReduce, {a, Shape(S32, {2, 3}), Scalar(F32), Scalar(S32)}, last, {}, {pair}}
           .Text()),
      "(f32[2], s32[2])");
}

TEST(Inference, ControlFlow) {
  Shape a = F({2}), state = Shape::Tuple({Scalar(S32), a});
  EXPECT_EQ((Call{Opcode::kTuple, {Scalar(S32), a}}.Text()), "(s32[], f32[2])");
  EXPECT_EQ((Call{Opcode::kGetTupleElement, {state}, {{Attr::kIndex, int64_t{1}}}}.Text()),
            "f32[2]");
  ExpectError({Opcode::kGetTupleElement, {state}, {{Attr::kIndex, int64_t{2}}}}, "0 to below 2");
  ExpectError({Opcode::kGetTupleElement, {a}, {{Attr::kIndex, int64_t{0}}}}, "must be a tuple");
  ProgramShape negate{{a}, a};
  EXPECT_EQ((Call{Opcode::kCall, {a}, {}, {}, {negate}}.Text()), "f32[2]");
  ExpectError({Opcode::kCall, {state}, {}, {}, {negate}}, "takes (f32[2])");
  EXPECT_EQ((Call{Opcode::kFusion, {a}, {{Attr::kFusionKind, std::string("kLoop")}}, {}, {negate}}
                 .Text()),
            "f32[2]");
  ExpectError({Opcode::kFusion, {a}, {{Attr::kFusionKind, std::string("kBest")}}, {}, {negate}},
              "expected kLoop");
  EXPECT_EQ((Call{Opcode::kConditional, {Scalar(Pred), a, a}, {}, {}, {negate, negate}}.Text()),
            "f32[2]");
  ExpectError({Opcode::kConditional, {Scalar(Pred), a}, {}, {}, {negate}}, "chooses between 2");
  ExpectError({Opcode::kConditional, {Scalar(S32), a}, {}, {}, {negate, negate}},
              "each takes one operand");
  ExpectError({Opcode::kConditional, {Scalar(F32), a}, {}, {}, {negate}}, "pred[] or s32[]");
  ProgramShape other{{a}, state};
  ExpectError({Opcode::kConditional, {Scalar(S32), a, a}, {}, {}, {negate, other}},
              "must be equal");
  ProgramShape condition{{state}, Scalar(Pred)}, body{{state}, state};
  EXPECT_EQ((Call{Opcode::kWhile, {state}, {}, {}, {condition, body}}.Text()), "(s32[], f32[2])");
  ExpectError({Opcode::kWhile, {state}, {}, {}, {body, body}}, "expected pred[]");
  ExpectError({Opcode::kWhile, {state}, {}, {}, {condition, {{state}, a}}}, "the body gives");
}

// Whatever the operands, an op gives a shape or an error, and says which op it was.
TEST(Inference, EveryOpTakesAnyOperands) {
  std::vector<Shape> shapes = {
      Shape(),       Shape::Token(),   Scalar(F32),  Shape(Pred, {0}),
      F({kMax / 8}), F({Sym("N"), 2}), Scalar(Pred), Shape::Tuple({Scalar(F32)})};
  std::set<Opcode> worked;
  for (int op = 0; op < kOpcodeCount; ++op) {
    Opcode opcode = static_cast<Opcode>(op);
    for (const Shape& shape : shapes) {
      for (size_t count = 0; count <= 3; ++count) {
        Call call{opcode, std::vector<Shape>(count, shape), {}, shape};
        Result<Shape> result = call.Infer();
        if (result.ok()) {
          worked.insert(opcode);
        } else {
          EXPECT_TRUE(StartsWith(result.status().message(), OpcodeName(opcode)));
        }
      }
    }
  }
  EXPECT_TRUE(worked.contains(Opcode::kAdd));
  EXPECT_TRUE(worked.contains(Opcode::kTuple));
}

}  // namespace
}  // namespace kiln
