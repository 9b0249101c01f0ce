#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Writes event streams in short words, separated by blanks. A word may end in `!Type`: the
// bracket it closes raised Type.
//
//   f+ f-  b+ b-  ph+ ph-  e+ e-  s+ s-  engine.forward, .backward, post hook, epilogue, step
//   epi    e+ e-             oh   an output hook      pro+ pro-  the prologue around its body
//   ms     a model step      zg   zero_grad           ab         mark backward_abandoned
//   g+7 g+8<7 g-7            graph task 7, task 8 nested in it
//   w:p    a gradient hook of p      w+:p w-:p  the same around something
//   c:4    a count           q cb+ cb-  a queued callback
//   reset[d1>d0]             a manager call: state before > after; letters d r f m take a
//                            number, q s (queued, seen) none; `=yes` after it: it returned true
//   fl:p1,p2  ge12 ge3       a bucket flush, the end of a gradient epilogue
//   push pop  st:p=AVAILABLE  z12+ z12-  module stack, parameter status (`*` after it:
//                            persistent), process_gradients
//   ft+ ft-                  functorch transform on, off
//   @1 u3/2 t1               from here on engine 1, micro-step 3 of global step 2, thread 1
//
// and any of these with what belongs to it, HEAD:TEXT@PARAMS#INDEX=NUMEL:
//   m ba fl                  mark (its parameter), bucket.add DTYPE (its parameter), bucket.flush
//   gb ga pa                 gathers begin and end, partition; TEXT is the list of parameters
//   fF fB rF rB fpost        fetch and release of a module for forward and backward; its forward
//   ended x+ x-                    engine.call and .return of any method fn+ bn+ bn- ac+ ac- rc+
//   rc- ci   Function, autocast (`on`), recompute, coll.issue
class PropertyScript {
 public:
  explicit PropertyScript(std::string_view words);

  const NameTable& names() const { return names_; }
  const std::vector<HookEvent>& events() const { return events_; }

 private:
  HookEvent& add(EventKind kind, std::string_view name);
  void read(std::string word);
  bool read_bracket(const std::string& word);
  bool read_event(const std::string& word);
  bool read_task(const std::string& word);
  bool read_param_word(const std::string& word);
  void read_manager(const std::string& word);

  NameTable names_;
  std::vector<HookEvent> events_;
  std::vector<GraphTaskId> tasks_;
  EngineId engine_{0};
  std::int64_t micro_step_ = 0;
  std::int64_t global_step_ = 0;
  std::int32_t thread_ = 0;
  std::int32_t transforms_ = 0;
  std::string exception_;
};

}  // namespace zeroproof
