#pragma once

namespace zeroproof::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool is_decay_decoupled = false;  // AdamW
  bool is_maximizing = false;
};

// AdamW's own default, the rest as Adam's.
inline AdamOptions adamw_options() {
  return {.weight_decay = 1e-2, .is_decay_decoupled = true};
}

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool is_nesterov = false;
  bool is_maximizing = false;
};

}  // namespace zeroproof::optim
