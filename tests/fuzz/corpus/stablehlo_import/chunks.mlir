// RUN: nothing
func.func @quantized(%a: tensor<2x!quant.uniform<i8<-127:127>:f32:0, {0.1:-30, 0.5}>>) {
  %0 = stablehlo.uniform_dequantize %a : (tensor<2x!quant.uniform<i8<-127:127>:f32:0, {0.1:-30, 0.5}>>) -> tensor<2xf32>
  check.expect_almost_eq_const %0, dense<[1.0, 0x7F800000]> : tensor<2xf32>
  func.return
}

// -----

func.func @narrow() {
  %0 = stablehlo.constant dense<[0.0, 1.0, 0xFF]> : tensor<3xf8E8M0FNU>
  %1 = stablehlo.constant dense<(1.0, -2.0)> : tensor<3xcomplex<f64>>
  %2 = stablehlo.constant dense<"0x05"> : tensor<3xi1>
  %3 = stablehlo.constant dense_resource<blob> : tensor<2xi4>
  %4 = stablehlo.convolution(%1, %1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[0, 1]], reverse = [false]} {batch_group_count = 1 : i64} : (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>) -> tensor<1x1x1xcomplex<f64>>
  return
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x0400000001FF"
    }
  }
#-}
