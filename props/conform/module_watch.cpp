#include "props/conform/module_watch.h"

namespace zeroproof {

void watch_forward(ProgramRun& run, nn::Module& module, const std::string& name) {
  module.register_forward_pre_hook([&run, name](const TensorList&) {
    run.emit(EventKind::module_fwd_pre, name);
    return TensorList{};
  });
  module.register_forward_hook([&run, name](const TensorList&, const TensorList&) {
    run.emit(EventKind::module_fwd_post, name);
    return TensorList{};
  });
}

void watch_backward(ProgramRun& run, nn::Module& module, const std::string& name) {
  module.register_full_backward_pre_hook([&run, name](const TensorList&) {
    run.emit(EventKind::module_bwd_pre, name);
    return TensorList{};
  });
  module.register_full_backward_hook([&run, name](const TensorList&, const TensorList&) {
    run.emit(EventKind::module_bwd_post, name);
    return TensorList{};
  });
}

}  // namespace zeroproof
