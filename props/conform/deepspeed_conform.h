#pragma once

#include <string>
#include <vector>

#include "props/conform/conform.h"
#include "props/conform/deepspeed_run.h"

namespace zeroproof {

// A difference between DeepSpeed and our engine under the upstream policy that has a reason.
struct KnownDifference {
  std::vector<std::string> scenarios;  // empty: any
  std::vector<int> stages;
  std::string dtype;            // empty: any
  std::string accelerator;      // of the recorded run; empty: any
  ReleaseRange releases;        // of DeepSpeed
  std::vector<std::string> at;  // recorded tokens or tensors, one of them the first difference
  bool is_surplus = false;      // the token alone is too much there: everything else has to agree
  std::string moved;            // tokens of this beginning are elsewhere: everything else agrees
  std::string reason;           // one sentence

  bool covers(const DeepspeedRecording& recorded) const;
};

// Of deepspeed_differences.json, in its order: the first one that covers a run counts.
const std::vector<KnownDifference>& known_differences();
const KnownDifference* find_known_difference(const DeepspeedRecording& recorded);

// All ranks of one run of our engine on the recorded scenario, parameters and inputs. Errors of
// engines and models are part of the recordings. Throws MissingTensor.
std::vector<DeepspeedRecording> run_as_recorded(const std::vector<DeepspeedRecording>& ranks,
                                                const EngineBehaviour& behaviour);

// What the recorded release of DeepSpeed does: the newest policy for a release without one, and
// that of 0.18.7 for a commit without a release.
EngineBehaviour recorded_behaviour(const DeepspeedRecording& recorded);

// The same, compared; by default under the policy of the recorded release: order tokens and
// collectives have to be equal on every rank; gradients, outputs and final parameters equal to
// 1e-5, or 2e-2 in bf16. Upstream releases parameters in the order of a Python set, which is that
// of addresses: where one release follows on another, any order is right, and the outcome is marked
// as a race.
ConformOutcome conform_deepspeed(const std::vector<DeepspeedRecording>& ranks);
ConformOutcome conform_deepspeed(const std::vector<DeepspeedRecording>& ranks,
                                 const EngineBehaviour& behaviour);

// Whether `path` is a trace of a training run; an error for a file that is no trace.
Result<bool> is_training_trace(const std::string& path);

// The run that a trace of one of its ranks belongs to: paths of all ranks, in their order. They
// differ in "_r<rank>." alone.
Result<std::vector<std::string>> rank_paths(const std::string& path);

// Reads and compares. Code unreadable when the trace of a rank is missing or damaged.
Result<ConformOutcome> conform_deepspeed(const std::vector<std::string>& paths);

}  // namespace zeroproof
