// The protocol world: the autograd of docs/spec/zero.md 1.1 without tensors.
#include "sim/protocol/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zeroproof {
namespace {

ProtocolNode node_of(NodeKind kind, std::string id, std::vector<std::size_t> next = {}) {
  ProtocolNode node;
  node.kind = kind;
  node.id = std::move(id);
  node.engine = EngineId{0};
  node.forward = "A";
  node.param = node.id;
  node.next = std::move(next);
  return node;
}

// One manual backward: an output hook over two leaves and, when asked for, a node that raises.
ProtocolProgram program_of(std::vector<NodeKind> below_output) {
  ProtocolProgram program;
  program.engines.resize(1);
  program.engines[0] = {.name = "e", .params = {}};
  GraphTaskProgram task;
  task.id = "backward";
  task.nodes.push_back(node_of(NodeKind::output_hook, "out"));
  task.nodes[0].sequence_nr = 99;
  for (std::size_t at = 0; at < below_output.size(); ++at) {
    task.nodes.push_back(node_of(below_output[at], "n" + std::to_string(at)));
    task.nodes[0].next.push_back(at + 1);
    program.engines[0].params.push_back(task.nodes.back().param);
  }
  program.tasks.push_back(task);
  Statement forward;
  forward.kind = StatementKind::forward;
  forward.engine = forward.forward.engine = EngineId{0};
  forward.forward.label = "A";
  Statement backward;
  backward.kind = StatementKind::backward;
  backward.engine = EngineId{0};
  backward.task = TaskIndex{0};
  program.statements = {forward, backward};
  return program;
}

class Events final : public EventSink {
 public:
  void on_event(const HookEvent& event) override { all.push_back(event); }
  std::size_t count(EventKind kind) const {
    std::size_t found = 0;
    for (const HookEvent& event : all) found += event.kind == kind ? 1 : 0;
    return found;
  }
  std::vector<HookEvent> all;
};

// Takes the last option each time and remembers the first choice point it was asked at.
class LastChooser final : public Chooser {
 public:
  std::size_t choose(const ChoicePoint& at) override {
    if (asked++ == 0) first_options.assign(at.options.begin(), at.options.end());
    states.push_back(at.state);
    EXPECT_EQ(at.site, "graph_task.ready");
    return at.options.size() - 1;
  }
  int asked = 0;
  std::vector<std::string> first_options;
  std::vector<Fingerprint> states;
};

struct Ran {
  NameTable names;
  Events events;
  std::vector<EngineOutcome> outcomes;
  Fingerprint end;

  Ran(const ProtocolProgram& program, OrderModel order_model, Chooser& chooser) {
    const ProtocolSetup setup{.order_model = order_model};
    ProtocolWorld world(program, setup, names, events);
    world.run(chooser);
    outcomes = world.outcomes();
    end = world.fingerprint();
  }

  std::vector<std::string> hooks() const {
    std::vector<std::string> params;
    for (const HookEvent& event : events.all) {
      if (event.kind == EventKind::param_post_acc) params.emplace_back(names.text(event.param));
    }
    return params;
  }
};

constexpr auto kLeaf = NodeKind::accumulate;

TEST(ProtocolWorld, Asks_only_where_several_nodes_are_legal) {
  const ProtocolProgram program = program_of({kLeaf, kLeaf, NodeKind::op});
  LastChooser chooser;
  const Ran ran(program, OrderModel::any_topological, chooser);
  EXPECT_EQ(chooser.asked, 1);
  EXPECT_EQ(chooser.first_options, (std::vector<std::string>{"n0", "n1"}));
  LastChooser unasked;
  const Ran faithful(program, OrderModel::faithful, unasked);
  EXPECT_EQ(unasked.asked, 0);
}

TEST(ProtocolWorld, Is_a_function_of_the_chooser) {
  const ProtocolProgram program = program_of({kLeaf, kLeaf, kLeaf});
  LastChooser last;
  LastChooser again;
  FirstChooser first;
  const Ran one(program, OrderModel::any_topological, last);
  const Ran two(program, OrderModel::any_topological, again);
  const Ran other(program, OrderModel::any_topological, first);
  EXPECT_TRUE(one.events.all == two.events.all);
  EXPECT_TRUE(last.states == again.states);
  EXPECT_EQ(one.hooks(), (std::vector<std::string>{"n2", "n1", "n0"}));
  EXPECT_EQ(other.hooks(), (std::vector<std::string>{"n0", "n1", "n2"}));
  EXPECT_TRUE(one.end == other.end);  // both orders lead to the same state
}

// Without it an explorer would take two different sets of nodes left for the same state.
TEST(ProtocolWorld, Fingerprints_the_nodes_that_are_left) {
  LastChooser chooser;
  const Ran ran(program_of({kLeaf, kLeaf, kLeaf, kLeaf}), OrderModel::any_topological, chooser);
  ASSERT_EQ(chooser.states.size(), 3U);
  EXPECT_NE(chooser.states[1].low, chooser.states[2].low);
}

TEST(ProtocolWorld, Drops_what_is_left_of_a_task_that_raised) {
  FirstChooser chooser;
  const ProtocolProgram program = program_of({kLeaf, NodeKind::raise, kLeaf});
  const Ran ran(program, OrderModel::any_topological, chooser);
  EXPECT_EQ(ran.events.count(EventKind::param_post_acc), 1U);
  EXPECT_EQ(ran.events.count(EventKind::cb_queue), 1U);
  EXPECT_EQ(ran.events.count(EventKind::cb_begin), 0U);  // rule C6
  EXPECT_EQ(ran.events.count(EventKind::exc), 1U);
  EXPECT_TRUE(ran.outcomes[0].epilogues.empty());
}

TEST(ProtocolWorld, Runs_the_callback_while_its_task_is_current) {
  FirstChooser chooser;
  const Ran ran(program_of({kLeaf}), OrderModel::faithful, chooser);
  ASSERT_EQ(ran.events.count(EventKind::cb_begin), 1U);
  for (const HookEvent& event : ran.events.all) {
    if (event.kind != EventKind::cb_begin) continue;
    EXPECT_EQ(event.graph_task, GraphTaskId{0});
  }
  EXPECT_EQ(ran.outcomes[0].epilogues.size(), 1U);
}

TEST(ProtocolWorld, Numbers_its_events_without_gaps) {
  FirstChooser chooser;
  const Ran ran(program_of({kLeaf, NodeKind::raise}), OrderModel::any_topological, chooser);
  std::uint64_t previous = 0;
  for (const HookEvent& event : ran.events.all) {
    EXPECT_EQ(event.lc, previous + 1);
    previous = event.lc;
  }
}

}  // namespace
}  // namespace zeroproof
