func.func @main(%i: tensor<i32>, %x: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<3xf32> cond {
    %1 = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %a, %a : tensor<i32>
    %2 = "stablehlo.case"(%a) ({
      %3 = chlo.sinh %b : tensor<3xf32> -> tensor<3xf32>
      stablehlo.return %3 : tensor<3xf32>
    }, {
      stablehlo.return %x : tensor<3xf32>
    }) : (tensor<i32>) -> tensor<3xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<3xf32>
  }
  %4 = stablehlo.reduce(%0#1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return %0#1, %4 : tensor<3xf32>, tensor<f32>
}
