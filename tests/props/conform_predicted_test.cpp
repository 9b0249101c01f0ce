// Programs without a bundled trace: their predicted order (autograd_semantics section 24), on
// numbers of our own.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "props/conform/program.h"

namespace zeroproof {
namespace {

struct Prediction {
  const char* program;
  const char* tensors;            // role:name:sizes, the sizes joined by x
  const char* order;              // tokens
  const char* not_compared = "";  // prefixes of tokens, as the recorder skips them
  const char* device = "cpu";
};

constexpr Prediction kPredictions[] = {
    {"P03_mlp2_3d",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:in0:2x3x4",
     "gt+ acc:l2.bias acc:l2.weight acc:l1.bias acc:l1.weight gt-"},
    {"P06_branches_swapped",
     "param:l0.weight:5x4 param:l0.bias:5 param:la.weight:3x5 param:la.bias:3 "
     "param:lb.weight:3x5 param:lb.bias:3 input:in0:2x4",
     "gt+ acc:la.bias acc:la.weight acc:lb.bias acc:lb.weight acc:l0.bias acc:l0.weight gt-"},
    {"P09_frozen",
     "param:l1.weight:4x4 param:l1.bias:4 param:l2.weight:4x4 param:l2.bias:4 "
     "param:l3.weight:2x4 param:l3.bias:2 input:in0:3x4",
     "gt+ acc:l3.bias acc:l3.weight acc:l1.bias gt-"},
    {"P12_two_losses",
     "param:l0.weight:5x4 param:l0.bias:5 param:la.weight:3x5 param:la.bias:3 "
     "param:lb.weight:3x5 param:lb.bias:3 input:in0:2x4",
     "gt+ acc:la.bias acc:la.weight acc:l0.bias acc:l0.weight gt- "
     "gt+ acc:lb.bias acc:lb.weight acc:l0.bias acc:l0.weight gt-"},
    {"P15_autograd_grad",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:in0:3x4",
     "gt+ th:l2.bias th:l1.weight gt-"},
    {"P18_detach_nograd",
     "param:l1.weight:4x4 param:l1.bias:4 param:l2.weight:2x4 param:l2.bias:2 "
     "param:l3.weight:2x4 param:l3.bias:2 param:l4.weight:2x4 param:l4.bias:2 input:in0:2x4",
     "gt+ acc:l3.bias acc:l3.weight acc:l2.bias acc:l2.weight acc:l1.bias acc:l1.weight gt-"},
    {"P21_multi_grad",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 "
     "param:l_unused.weight:2x2 param:l_unused.bias:2 input:in0:3x4",
     "gt+ acc:l2.bias mh:any acc:l2.weight acc:l1.bias mh:all acc:l1.weight gt-"},
    {"P42_backward_in_forward",
     "param:l1.weight:5x4 param:l1.bias:5 param:head.weight:3x5 input:in0:4x4",
     "fn+:tiled gt+ acc:head.weight gt- gt+ acc:head.weight gt- fn-:tiled gt+ bn+:tiled bn-:tiled "
     "acc:l1.bias acc:l1.weight gt-"},
    {"P45_reentrant_depth", "input:x:1",
     "m:main_levels:61 m:other_thread_levels:10 m:distinct_threads:2", "gt bn acc"},
    {"P45_reentrant_depth", "input:x:1",
     "m:main_levels:0 m:other_thread_levels:71 m:distinct_threads:2", "gt bn acc", "cuda:0"},
    {"P51_cuda_threads", "param:l1.weight:5x4 param:l1.bias:5 input:in0:3x4",
     "gt+ h:loss cbq:a acc:l1.bias acc:l1.weight cb+:a cb-:a gt- m:hook_thread_is_main:True "
     "m:cb_thread_is_main:True"},
    {"P51_cuda_threads", "param:l1.weight:5x4 param:l1.bias:5 input:in0:3x4",
     "gt+ h:loss cbq:a acc:l1.bias acc:l1.weight cb+:a cb-:a gt- m:hook_thread_is_main:False "
     "m:cb_thread_is_main:False",
     "", "cuda:0"},
    {"P54_steal_or_clone",
     "input:plain:4 input:expanded:4 input:held:4 input:create:4 input:passed:4 input:w:4 "
     "input:g:4",
     "m:plain:stolen m:expanded:cloned m:held:cloned m:create:cloned m:passed:cloned", "gt acc"},
    {"P57_inplace_moves_hooks", "input:x:3", "gt+ h:B h:A acc:x gt- m:ratio_A_over_B:3.0"},
    {"P72_zero3_boundaries",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:in0:3x4",
     "gt+ m:pre_l2 acc:l2.bias acc:l2.weight m:post_l2 m:pre_l1 acc:l1.bias acc:l1.weight gt-"},
    {"P75_ddp",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:in0:3x4",
     "gt+ acc:l2.bias acc:l2.weight acc:l1.bias acc:l1.weight bucket:0 gt- "
     "m:final_after_backward:True gt+ acc:l2.bias acc:l2.weight bucket:0 acc:l1.bias "
     "acc:l1.weight bucket:1 gt- m:final_after_backward:True"},
    {"P78_capture_nonleaf",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:in0:3x4",
     "gt+ h:h gt- m:same:True"},
    {"P80_multithreading_disabled", "param:l1.weight:5x4 param:l1.bias:5 input:in0:3x4",
     "gt+ h:loss cbq:a acc:l1.bias acc:l1.weight cb+:a cb-:a gt- m:hook_thread_is_main:True "
     "m:cb_thread_is_main:True",
     "", "cuda:0"},
    {"P81_cuda_streams", "param:l1.weight:5x4 param:l1.bias:5 input:in0:3x4",
     "gt+ h:loss cbq:a acc:l1.bias acc:l1.weight cb+:a cb-:a gt- m:acc_on_side:True "
     "m:cb_on_caller:True m:grad_ok:True",
     "", "cuda:0"},
    {"P84_module_hooks_in_ckpt",
     "param:l1.weight:5x4 param:l1.bias:5 param:l2.weight:2x5 param:l2.bias:2 input:x:3x4",
     "cf+:R cf-:R gt+ rc+:R rc-:R gt+ bpre:l2 acc:l2.bias acc:l2.weight bpost:l2 bpre:l1 "
     "acc:l1.bias acc:l1.weight bpost:l1 gt- acc:x gt- cf+:N cf-:N gt+ bpre:l2 rc+:N rc-:N:stop "
     "acc:l2.bias acc:l2.weight bpost:l2 bpre:l1 acc:l1.bias acc:l1.weight bpost:l1 acc:x gt-"},
    {"P87_retain_before_prehook", "input:x:3",
     "gt+ m:y.grad_set_in_prehook:True acc:x gt- m:y.grad_plain:True m:x.grad_doubled:True"},
    {"P90_leaf_as_root", "input:p:1", "gt+ th:p acc:p gt-"},
    {"P93_sequence_numbers", "input:x:3 input:y:3",
     "m:plain_op:0 m:grad_op:1 m:function_no_grad_input:1 m:function_under_no_grad:1 "
     "m:outer_smaller:True gt+ acc:x gt- m:two_roots:1 gt+ acc:x gt- m:one_root:0"},
    {"P96_zero_grad_between", "param:l.weight:3x4 input:in0:2x4",
     "gt+ acc:l.weight gt- gt+ acc:l.weight gt- m:same_object:True m:none_after_zero:True gt+ "
     "acc:l.weight gt- m:same_object_again:False"},
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

Recording made_up(const Prediction& prediction) {
  Recording recording;
  recording.header.producer.emplace_back("device", prediction.device);
  double value = 0.0;
  for (const std::string& word : split(prediction.tensors, ' ')) {
    const auto fields = split(word, ':');
    TensorRecord tensor{fields.at(0), fields.at(1), Shape{}, "float64", std::vector<double>{}};
    for (const std::string& size : split(fields.at(2), 'x'))
      tensor.shape->push_back(std::stoll(size));
    for (std::int64_t i = 0; i < numel(*tensor.shape); ++i)
      tensor.values->push_back(std::sin(value += 1.0));
    recording.tensors[{tensor.role, tensor.name}] = tensor;
  }
  return recording;
}

std::vector<std::string> compared(const std::vector<std::string>& tokens,
                                  const std::string& not_compared) {
  std::vector<std::string> kept;
  for (const std::string& token : tokens) {
    bool is_kept = true;
    for (const std::string& prefix : split(not_compared, ' '))
      is_kept = is_kept && !token.starts_with(prefix);
    if (is_kept) kept.push_back(token);
  }
  return kept;
}

TEST(ConformPrograms, Without_a_trace_follow_their_prediction) {
  for (const Prediction& prediction : kPredictions) {
    const ConformProgram* program = find_program(prediction.program);
    ASSERT_NE(nullptr, program) << prediction.program;
    const Recording start = made_up(prediction);
    ProgramRun run(start, DType::float64);
    program->run(run);
    EXPECT_EQ(split(prediction.order, ' '), compared(run.finish().tokens, prediction.not_compared))
        << prediction.program;
  }
}

}  // namespace
}  // namespace zeroproof
