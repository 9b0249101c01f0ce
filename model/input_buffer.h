#pragma once

#include "zeroproof/internal/model/node.h"

namespace zeroproof {

// Whether what a slot has so far may be written over: no one else can see it.
bool is_writable_buffer(const Tensor& slot);

// Adds a gradient to what a slot has so far (rule E4): in place where no other tensor can see it.
// An undefined gradient has no effect.
void add_to_buffer(Autograd& autograd, Tensor& slot, Tensor grad);

// Brings a gradient into the form the slot was made for, summing broadcast dimensions away and
// casting (rule E5). AutogradError when the shape does not fit.
void validate_grad(Autograd& autograd, const Node& target, std::uint32_t slot, Tensor& grad);

}  // namespace zeroproof
