#pragma once

#include <string_view>

// Calls of an engine by their names in events (docs/reference/trace_format.md section 14).
namespace zeroproof::reference::calls {

inline constexpr std::string_view kForward = "engine.forward";
inline constexpr std::string_view kEpilogue = "engine.backward_epilogue";
inline constexpr std::string_view kReduction = "engine.allreduce_gradients";
inline constexpr std::string_view kWholeReduction = "engine.buffered_allreduce_fallback";
// The last reductions of a backward, or of a block.
inline constexpr std::string_view kLastFlush12 = "z12.independent_gradient_partition_epilogue";
inline constexpr std::string_view kLastFlush3 = "z3.independent_gradient_partition_epilogue";
inline constexpr std::string_view kCoalesce = "engine.coalesce_grad_reduction";
inline constexpr std::string_view kNoSync = "engine.no_sync";
inline constexpr std::string_view kStep = "engine.step";
inline constexpr std::string_view kModelStep = "engine.take_model_step";
inline constexpr std::string_view kZeroGrad = "engine.zero_grad";
inline constexpr std::string_view kLoad = "engine.load_checkpoint";
inline constexpr std::string_view kHook = "grad_hook";
inline constexpr std::string_view kAverage = "z12.average_tensor";
inline constexpr std::string_view kPartition = "z3.partition_grads";
inline constexpr std::string_view kContext = "z3.gathered_parameters";
inline constexpr std::string_view kAddExternal = "coord.add_external:";  // and a module
inline constexpr std::string_view kInvalidate = "coord.invalidate_trace";
inline constexpr std::string_view kResetOrder = "coord.reset_step";
inline constexpr std::string_view kResetAll = "coord.release_and_reset_all";

}  // namespace zeroproof::reference::calls
