module @scale {
  func.func @main(%x: tensor<4xf64>, %factor: tensor<f64>) -> (tensor<4xf64>, tensor<f64>) {
    %0 = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %1 = stablehlo.multiply %x, %0 : tensor<4xf64>
    %2 = stablehlo.negate %factor : tensor<f64>
    return %1, %2 : tensor<4xf64>, tensor<f64>
  }
}
