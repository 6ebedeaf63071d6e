#include "device/cuda/conditions.h"

namespace kiln::device::cuda {

// The assembler knows cudaGraphSetConditional by name, and the driver defines it: no library has
// it. Numbers of branches are compared as unsigned, which makes negative ones large.
const char kConditionPtx[] = R"(
.version 6.3
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry kiln_set_condition(
  .param .u64 handle, .param .u64 address, .param .u32 branches, .param .u32 branch)
{
  .reg .pred %p<4>;
  .reg .b32 %r<7>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [address];
  ld.param.u32 %r1, [branches];
  ld.param.u32 %r2, [branch];
  cvta.to.global.u64 %rd3, %rd2;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra PREDICATE;
  ld.global.u32 %r3, [%rd3];
  sub.u32 %r4, %r1, 1;
  min.u32 %r3, %r3, %r4;
  bra.uni VALUE;
PREDICATE:
  ld.global.u8 %r3, [%rd3];
  setp.ne.u32 %p2, %r3, 0;
  selp.u32 %r3, 0, 1, %p2;
VALUE:
  setp.eq.u32 %p3, %r3, %r2;
  selp.u32 %r5, 1, 0, %p3;
  setp.eq.u32 %p3, %r2, 0xffffffff;
  selp.u32 %r6, %r3, %r5, %p3;
  {
    .param .b64 given_handle;
    .param .b32 given_value;
    st.param.b64 [given_handle], %rd1;
    st.param.b32 [given_value], %r6;
    call.uni cudaGraphSetConditional, (given_handle, given_value);
  }
  ret;
}
)";

bool Conditions::are_there() const {
  const OptionalFunctions& api = context_->driver().optional();
  return context_->driver().version() >= kLeastVersion &&
         api.GraphConditionalHandleCreate.call != nullptr && api.GraphAddNode.call != nullptr;
}

Status Conditions::Describe(Condition& condition, Launch& launch) {
  std::lock_guard lock(mutex_);
  if (!code_) {
    // Assembled by the driver at load time: ahead-of-time assembly may not know the driver's
    // functions.
    KILN_ASSIGN_OR_RETURN(code_, LoadedCode::Load(context_, kConditionPtx));
  }
  KILN_ASSIGN_OR_RETURN(GpuKernel * kernel, code_->Find("kiln_set_condition"));
  launch.parameters = {&condition.handle, &condition.address, &condition.branches,
                       &condition.branch};
  launch.node = {};
  launch.node.function = static_cast<CudaKernel*>(kernel)->handle();
  launch.node.parameters = launch.parameters.data();
  return OkStatus();
}

}  // namespace kiln::device::cuda
