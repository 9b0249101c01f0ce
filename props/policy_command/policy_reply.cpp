#include "props/policy_command/policy_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace zeroproof::policy_command {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kShownBytes = 120;

constexpr std::array<std::string_view, 6> kQuestions = {
    "has_callback_api",     "current_graph_task", "queue_callback",
    "count_expected_hooks", "run_post_hook",      "abandon_gradients",
};
constexpr std::array<std::string_view, 2> kPrologueRules = {"once_per_forward",
                                                            "once_per_graph_task"};
constexpr std::array<std::string_view, 3> kRunningMarks = {"left_by_exception", "restored",
                                                           "counted"};

struct Mistake {
  std::string text;
};

// The place of a word in a table, as the enumerator of that number.
template <class Enum, std::size_t N>
Enum word_of(const Json& value, const std::array<std::string_view, N>& words,
             std::string_view key) {
  const auto word = value.is_string() ? value.get<std::string>() : value.dump();
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end()) throw Mistake{fmt::format("\"{}\": unknown word {}", key, value.dump())};
  return static_cast<Enum>(at - words.begin());
}

const Json& member(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) throw Mistake{fmt::format("no \"{}\"", key)};
  return object.at(key);
}

template <class T>
void read(const Json& object, const char* key, T& out) {
  const auto at = object.find(key);
  if (at != object.end() && !at->is_null()) at->get_to(out);
}

BackwardState counters_of(const Json& object) {
  BackwardState state;
  read(object, "remaining_grad_acc_hooks", state.remaining_hooks);
  read(object, "len(_grad_acc_post_hooks)", state.post_hooks);
  read(object, "backward_active_depth", state.active_depth);
  read(object, "backward_seen_this_step", state.is_backward_seen_this_step);
  read(object, "epilogue_ran_this_backward", state.ran_epilogue_this_backward);
  read(object, "hooks_fired_this_backward", state.hooks_fired);
  read(object, "max_expected_hooks_seen", state.max_expected_hooks);
  read(object, "post_backward_callback_queued", state.is_callback_queued);
  read(object, "post_backward_callback_graph_task_id", state.callback_graph_task.value);
  return state;
}

PolicyState state_of(const Json& now) {
  PolicyState state;
  state.text = member(now, "state").get<std::string>();
  state.counters = counters_of(member(now, "counters"));
  read(now, "skips_manual_epilogue", state.skips_manual_epilogue);
  read(now, "refuses_step", state.refuses_step);
  read(now, "demands_restart", state.demands_restart);
  return state;
}

ManagerNote note_of(const Json& object) {
  ManagerNote note;
  note.is_return = object.contains("return");
  const std::string name = member(object, note.is_return ? "return" : "call").get<std::string>();
  const auto method = manager_method_of(name);
  if (!method) throw Mistake{fmt::format("\"notes\": unknown method {}", name)};
  note.method = *method;
  note.state = counters_of(member(object, "counters"));
  if (object.contains("argument")) note.argument = object.at("argument").get<std::int64_t>();
  if (object.contains("returned")) note.returned = object.at("returned").get<bool>();
  read(object, "raised", note.raised);
  return note;
}

PolicyException exception_of(const Json& value) {
  if (value == "host") return {.is_of_host = true, .type = {}, .text = {}};
  return {.is_of_host = false,
          .type = member(value, "type").get<std::string>(),
          .text = member(value, "text").get<std::string>()};
}

PolicyReply reply_of(const Json& line) {
  PolicyReply reply;
  if (line.contains("ask")) {
    reply.question = word_of<Question>(line.at("ask"), kQuestions, "ask");
  } else if (line.contains("raised")) {
    reply.exception = exception_of(line.at("raised"));
  } else if (member(line, "done").is_boolean()) {
    reply.returned = line.at("done").get<bool>();
  }
  for (const Json& note : line.value("notes", Json::array())) reply.notes.push_back(note_of(note));
  reply.state = state_of(member(line, "now"));
  return reply;
}

bool is_word(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

PolicyHello hello_of(const Json& line) {
  if (member(line, "zeroproof_policy") != kVersion)
    throw Mistake{fmt::format("\"zeroproof_policy\" is {}; this zeroproof speaks version {}",
                              line.at("zeroproof_policy").dump(), kVersion)};
  PolicyHello hello;
  hello.name = member(line, "name").get<std::string>();
  if (!is_word(hello.name))
    throw Mistake{
        fmt::format("\"name\": '{}' is no word of letters, digits, '.', '-' and '_'", hello.name)};
  read(line, "versions", hello.versions);
  if (line.contains("prologue_rule"))
    hello.prologue_rule =
        word_of<PrologueRule>(line.at("prologue_rule"), kPrologueRules, "prologue_rule");
  if (line.contains("running_mark"))
    hello.running_mark =
        word_of<RunningMark>(line.at("running_mark"), kRunningMarks, "running_mark");
  hello.state = state_of(member(line, "now"));
  return hello;
}

template <class Parse>
auto parsed(const std::string& line, const Parse& parse) -> Result<decltype(parse(Json()))> {
  std::string mistake;
  try {
    return parse(Json::parse(line));
  } catch (const Mistake& found) {
    mistake = found.text;
  } catch (const Json::exception& error) {
    mistake = error.what();
  }
  return fail(ErrorCode::unreadable, fmt::format("its line is not of the protocol ({}): {}",
                                                 mistake, line.substr(0, kShownBytes)));
}

}  // namespace

Result<PolicyHello> parse_hello(const std::string& line) {
  const Json document = Json::parse(line, nullptr, false);
  if (document.is_object() && document.contains("cannot_run"))
    return fail(ErrorCode::cannot_run, document.at("cannot_run").is_string()
                                           ? document.at("cannot_run").get<std::string>()
                                           : document.dump());
  return parsed(line, hello_of);
}

Result<PolicyReply> parse_reply(const std::string& line) {
  return parsed(line, reply_of);
}

}  // namespace zeroproof::policy_command
