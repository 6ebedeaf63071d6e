"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi32>, tensor<2x1xi64>) -> tensor<4xi32>, sym_name = "f"}> ({
  ^bb0(%a: tensor<4xi32>, %b: tensor<2x1xi64>):
    %u = "stablehlo.constant"() {value = dense<"0x0100000002000000"> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "stablehlo.scatter"(%a, %b, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      "stablehlo.return"(%y) : (tensor<i32>) -> ()
    }) : (tensor<4xi32>, tensor<2x1xi64>, tensor<2xi32>) -> tensor<4xi32>
    %r, %t:2 = "x.many"(%0) {p = array<i1: true, false>, q = [1.5 : f16, unit, @f::@g, tuple<i1>], z} : (tensor<4xi32>) -> (index, tensor<*xf32>, !stablehlo.token)
    "func.return"(%0) : (tensor<4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
