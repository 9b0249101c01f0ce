#pragma once

namespace zeroproof {

class PartitionedParameter;

// Who owns a gathered parameter beside the modules' hooks, and may need it longer than others.
class ParameterClaims {
 public:
  virtual ~ParameterClaims() = default;
  // Whether it has to stay whole; then its slice takes the changes over, if it has been updated.
  virtual bool keeps(PartitionedParameter& parameter, bool has_been_updated) = 0;
  // Another owner has it from now on, or it has no owner.
  virtual void forget(PartitionedParameter& parameter) = 0;
};

}  // namespace zeroproof
