#include "props/train/window_inputs.h"

namespace zeroproof::train {

TensorList WindowInputs::next() {
  TensorList inputs = pass_.next_inputs();
  if (spec_.input_grad != 0) inputs.at(0).set_requires_grad(true);
  return inputs;
}

int WindowInputs::next_expert() {
  const int apart = spec_.stage == 3 ? pass_.target().rank() : 0;
  return (forwards_++ + apart) % 2;
}

void WindowInputs::rewind(const Position& position) {
  pass_.rewind(position.of_pass);
  forwards_ = position.forwards;
}

}  // namespace zeroproof::train
