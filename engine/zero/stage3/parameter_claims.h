#pragma once

namespace zeroproof {

class PartitionedParameter;

// Who owns a gathered parameter beside the modules' hooks, and may need it longer than others.
class ParameterClaims {
 public:
  virtual ~ParameterClaims() = default;
  // Whether it has to stay whole; `has_been_updated`: with changes that its slice lacks.
  virtual bool keeps(PartitionedParameter& parameter, bool has_been_updated) = 0;
  // Its slice takes over the changes that it lacks, of a parameter that is whole.
  virtual void write_update(PartitionedParameter& parameter) = 0;
  // Another owner has it from now on, or it has no owner.
  virtual void forget(PartitionedParameter& parameter) = 0;
};

}  // namespace zeroproof
