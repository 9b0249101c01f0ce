#pragma once

#include <cstddef>

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What a generated program says about its steps, where it says something, for all engines: the loss
// scale of the window that begins, and whether micro-batch `micro` of the window ends it.
void set_loss_scale(const CaseSpec& spec, Pass& pass);
// Another loss scale than it is, which nothing that was cleared is in the way of.
void change_loss_scale(const CaseSpec& spec, Pass& pass);
void set_boundary(const CaseSpec& spec, Pass& pass, std::size_t micro);
// What the first engine answers before that micro-batch, and whether losses need a scaler; the
// baseline knows. The same of boundaries behind its step.
void record_boundary(const CaseSpec& spec, Pass& pass, std::size_t micro);
void record_boundary_behind(const CaseSpec& spec, Pass& pass, std::size_t micro);

}  // namespace zeroproof::train
