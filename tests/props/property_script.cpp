// The words of PropertyScript, and that it refuses others.
#include "tests/props/property_script.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "zeroproof/model/backward_state.h"

namespace zeroproof {
namespace {

struct BracketWord {
  std::string_view word;
  std::string_view method;
};

constexpr std::array kBrackets = {
    BracketWord{"f", "engine.forward"},
    BracketWord{"b", "engine.backward"},
    BracketWord{"ph", "engine.backward_post_hook"},
    BracketWord{"e", "engine.backward_epilogue"},
    BracketWord{"s", "engine.step"},
    BracketWord{"pro", "engine.backward_prologue"},
    BracketWord{"z12", "z12.process_gradients"},
};

constexpr std::array kInstants = {
    BracketWord{"oh", "engine.backward_prologue_per_tensor"},
    BracketWord{"epi", "engine.backward_epilogue"},
    BracketWord{"ms", "engine.take_model_step"},
    BracketWord{"zg", "engine.zero_grad"},
    BracketWord{"ge12", "z12.independent_gradient_partition_epilogue"},
    BracketWord{"ge3", "z3.independent_gradient_partition_epilogue"},
    BracketWord{"push", "z3.pre_forward"},
    BracketWord{"pop", "z3.post_forward"},
};

struct EventWord {
  std::string_view word;
  EventKind kind;
  bool is_about_params = false;  // TEXT is the list of parameters
  bool is_forward = false;
};

constexpr std::array kEventWords = {
    EventWord{"m", EventKind::mark},
    EventWord{"ba", EventKind::bucket_add},
    EventWord{"fl", EventKind::bucket_flush},
    EventWord{"gb", EventKind::zparam_gather_begin, true},
    EventWord{"ga", EventKind::zparam_gather_end, true},
    EventWord{"pa", EventKind::zparam_partition, true},
    EventWord{"fF", EventKind::zmod_fetch, false, true},
    EventWord{"fB", EventKind::zmod_fetch},
    EventWord{"rF", EventKind::zmod_release, false, true},
    EventWord{"rB", EventKind::zmod_release},
    EventWord{"fpost", EventKind::module_fwd_post},
    EventWord{"x+", EventKind::engine_call},
    EventWord{"x-", EventKind::engine_return},
    EventWord{"fn+", EventKind::fn_forward_begin},
    EventWord{"bn+", EventKind::fn_backward_begin},
    EventWord{"bn-", EventKind::fn_backward_end},
    EventWord{"ac+", EventKind::autocast_enter},
    EventWord{"ac-", EventKind::autocast_exit},
    EventWord{"rc+", EventKind::ckpt_recompute_begin},
    EventWord{"rc-", EventKind::ckpt_recompute_end},
    EventWord{"ci", EventKind::coll_issue},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kManagerWords = {{
    {"reset", "reset_for_new_step"},
    {"enter", "enter_backward"},
    {"exit", "exit_backward"},
    {"queue", "queue_post_backward_callback"},
    {"refresh", "should_refresh_expected_hook_count"},
    {"reenter", "reenter_backward_if_needed"},
    {"update", "update_hook_state_and_maybe_run_epilogue"},
    {"run_post", "run_grad_acc_post_hooks"},
}};

BackwardState parse_state(std::string_view text) {
  BackwardState state;
  std::istringstream words{std::string(text)};
  for (char letter = 0; words >> letter;) {
    if (letter == 'q') state.is_callback_queued = true;
    if (letter == 's') state.is_backward_seen_this_step = true;
    if (letter == 'd') words >> state.active_depth;
    if (letter == 'r') words >> state.remaining_hooks;
    if (letter == 'f') words >> state.hooks_fired;
    if (letter == 'm') words >> state.max_expected_hooks;
  }
  return state;
}

}  // namespace

PropertyScript::PropertyScript(std::string_view words) {
  std::istringstream stream{std::string(words)};
  for (std::string word; stream >> word;) read(word);
}

HookEvent& PropertyScript::add(EventKind kind, std::string_view name) {
  HookEvent event;
  event.kind = kind;
  event.lc = events_.size() + 1;
  event.graph_task = tasks_.empty() ? GraphTaskId::none() : tasks_.back();
  event.transforms = transforms_;
  event.thread = thread_;
  if (!name.empty()) event.name = names_.intern(name);
  if (!exception_.empty()) event.exception = names_.intern(exception_);
  if (kind == EventKind::engine_call || kind == EventKind::mark || kind == EventKind::cb_queue)
    event.engine = engine_;
  if (kind == EventKind::engine_call) event.micro_step = micro_step_;
  if (kind == EventKind::engine_call) event.global_step = global_step_;
  events_.push_back(event);
  return events_.back();
}

void PropertyScript::read(std::string word) {
  const std::size_t bang = word.find('!');
  exception_ = bang == std::string::npos ? "" : word.substr(bang + 1);
  word = word.substr(0, bang);
  if (word.front() == '@') {
    engine_ = EngineId{std::stoi(word.substr(1))};
  } else if (word.front() == 'u' && word.size() > 1 && std::isdigit(word[1]) != 0) {
    micro_step_ = std::stoi(word.substr(1));
    const std::size_t slash = word.find('/');
    if (slash != std::string::npos) global_step_ = std::stoi(word.substr(slash + 1));
  } else if (word == "ft+" || word == "ft-") {
    transforms_ += word == "ft+" ? 1 : -1;
  } else if (word == "q") {
    add(EventKind::cb_queue, "0:callback");
  } else if (word == "cb+" || word == "cb-") {
    add(word == "cb+" ? EventKind::cb_begin : EventKind::cb_end, "0:callback");
  } else if (word == "ab") {
    add(EventKind::mark, "backward_abandoned");
  } else if (word.find('[') != std::string::npos) {
    read_manager(word);
  } else if (word[0] == 't' && word.size() > 1 && std::isdigit(word[1]) != 0) {
    thread_ = std::stoi(word.substr(1));
  } else if (read_event(word)) {
    return;
  } else if (!read_task(word) && !read_param_word(word) && !read_bracket(word)) {
    throw std::invalid_argument("unknown word " + word);
  }
}

// HEAD:TEXT@PARAMS#INDEX=NUMEL, for the heads of kEventWords.
bool PropertyScript::read_event(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos) return false;
  const auto* known = std::find_if(kEventWords.begin(), kEventWords.end(), [&](const auto& entry) {
    return entry.word == word.substr(0, colon);
  });
  if (known == kEventWords.end()) return false;
  std::string rest = word.substr(colon + 1);
  const auto take = [&](char sign) {
    const std::size_t at = rest.rfind(sign);
    const std::string part = at == std::string::npos ? "" : rest.substr(at + 1);
    if (at != std::string::npos) rest.resize(at);
    return part;
  };
  const std::string numel = known->kind == EventKind::zparam_status ? "" : take('=');
  const std::string index = take('#');
  std::string params = known->is_about_params ? std::exchange(rest, "") : take('@');
  if (known->kind == EventKind::bucket_flush && params.empty()) {  // fl:p,q of float32
    params = std::exchange(rest, "float32");
  }
  HookEvent& event = add(known->kind, rest);
  event.is_forward = known->is_forward;
  event.is_enabled = rest == "on";
  if (!numel.empty()) event.numel = std::stoll(numel);
  if (!index.empty()) event.index = std::stoll(index);
  std::istringstream list(params);
  for (std::string param; std::getline(list, param, ',');)
    event.params.push_back(names_.intern(param));
  if (known->kind == EventKind::mark || known->kind == EventKind::bucket_add) {
    if (!event.params.empty()) event.param = event.params.front();
    event.params.clear();
  }
  return true;
}

bool PropertyScript::read_bracket(const std::string& word) {
  for (const BracketWord& known : kInstants) {
    if (word != known.word) continue;
    const std::string exception = std::exchange(exception_, "");
    add(EventKind::engine_call, known.method);
    exception_ = exception;
    add(EventKind::engine_return, known.method);
    return true;
  }
  for (const BracketWord& known : kBrackets) {
    if (word.substr(0, word.size() - 1) != known.word) continue;
    add(word.back() == '+' ? EventKind::engine_call : EventKind::engine_return, known.method);
    return true;
  }
  return false;
}

bool PropertyScript::read_task(const std::string& word) {
  if (word.size() < 3 || word[0] != 'g' || (word[1] != '+' && word[1] != '-')) return false;
  const std::int64_t id = std::stoll(word.substr(2));
  if (word[1] == '-') tasks_.pop_back();
  HookEvent& event = add(word[1] == '+' ? EventKind::gt_begin : EventKind::gt_end, "");
  event.graph_task = GraphTaskId{id};
  event.call = id;
  const std::size_t parent = word.find('<');
  if (parent != std::string::npos) event.parent_call = std::stoll(word.substr(parent + 1));
  if (word[1] == '+') tasks_.push_back(event.graph_task);
  return true;
}

bool PropertyScript::read_param_word(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos) return false;
  const std::string head = word.substr(0, colon);
  const std::string tail = word.substr(colon + 1);
  if (head == "w" || head == "w+")
    add(EventKind::engine_call, "grad_hook").param = names_.intern(tail);
  if (head == "w" || head == "w-")
    add(EventKind::engine_return, "grad_hook").param = names_.intern(tail);
  if (head == "c") add(EventKind::mark, "count_used_parameters:" + tail);
  if (head == "st") {
    const std::size_t equals = tail.find('=');
    const std::size_t star = tail.find('*');
    HookEvent& event =
        add(EventKind::zparam_status,
            tail.substr(equals + 1, star == std::string::npos ? star : star - equals - 1));
    event.param = names_.intern(tail.substr(0, equals));
    event.is_persistent = star != std::string::npos;
  }
  return true;
}

void PropertyScript::read_manager(const std::string& word) {
  const std::size_t open = word.find('[');
  const std::size_t arrow = word.find('>');
  const std::size_t close = word.find(']');
  const std::string head = word.substr(0, open);
  std::string_view method;
  for (const auto& [known, name] : kManagerWords)
    if (head == known) method = name;
  if (method.empty()) throw std::invalid_argument("unknown manager word " + word);
  const std::string exception = std::exchange(exception_, "");
  HookEvent& call = add(EventKind::bhs_call, method);
  call.manager = parse_state(word.substr(open + 1, arrow - open - 1));
  call.engine = engine_;
  exception_ = exception;
  HookEvent& back = add(EventKind::bhs_return, method);
  back.manager = parse_state(word.substr(arrow + 1, close - arrow - 1));
  back.engine = engine_;
  if (word.ends_with("=yes")) back.returned = true;
}

}  // namespace zeroproof
