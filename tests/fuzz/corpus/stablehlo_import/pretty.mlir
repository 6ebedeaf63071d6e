#loc1 = loc("f.py":3:4)
!t = tensor<2x3xf32>
module @m attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: !t {a.b = "c"}, %arg1: tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> (tensor<f32>, !t) {
    %cst = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc1)
    %c = stablehlo.constant dense<[[1, -2], [3, 0x7F]]> : tensor<2x2xi8>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (!t, tensor<f32>) -> tensor<f32>
    %1:2 = stablehlo.while(%i = %0, %x = %arg0) : tensor<f32>, !t
    cond {
      %p = stablehlo.compare  LT, %i, %cst,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.add %i, %i : tensor<f32>
      stablehlo.return %s, %x : tensor<f32>, !t
    }
    %2 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, HIGH] : (!t, !t) -> tensor<2x2xf32>
    %3 = stablehlo.slice %arg0 [0:1, 0:3:2] : (!t) -> tensor<1x2xf32>
    %4 = stablehlo.pad %arg0, %cst, low = [0, 1], high = [2, -1], interior = [0, 0] : (!t, tensor<f32>) -> tensor<4x3xf32>
    %5 = stablehlo.custom_call @foo(%4) {backend_config = {x = 1 : ui8}} : (tensor<4x3xf32>) -> !t
    return %0, %5 : tensor<f32>, !t loc(callsite("g"(#loc1) at #loc))
  }
}
#loc = loc(unknown)
