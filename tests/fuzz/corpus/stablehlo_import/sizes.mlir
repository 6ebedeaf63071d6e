func.func @main(%x: tensor<4x2xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4x2xf32>) -> tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.concatenate %1, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = stablehlo.constant dense<1.0> : tensor<f32>
  %4 = stablehlo.dynamic_broadcast_in_dim %3, %2, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  %5 = call @twice(%4) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %5 : tensor<?x?xf32>
}
func.func private @twice(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = chlo.broadcast_add %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
