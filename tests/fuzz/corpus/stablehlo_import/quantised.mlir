func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>
  %1 = stablehlo.uniform_quantize %y : (tensor<3x4xf32>) -> tensor<3x4x!quant.uniform<i8:f32:1, {0.5,0.25,0.125:2,1.0}>>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x4x!quant.uniform<i8:f32:1, {0.5,0.25,0.125:2,1.0}>>) -> tensor<2x4x!quant.uniform<i32:f32, 0.3:-7>>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<2x4x!quant.uniform<i32:f32, 0.3:-7>>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}
