// `zeroproof export --torch`: a scenario or finding as a Python script for PyTorch or DeepSpeed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/files/atomic_file.h"
#include "model/check.h"
#include "props/cli/folder.h"
#include "props/cli/policy_flag.h"
#include "props/cli/python_check.h"
#include "props/cli/verb.h"
#include "props/export/export_target.h"
#include "props/export/torch_script.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

class ExportVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"TARGET",
                             "a scenario (id or *.json), a finding of explore --out, or a "
                             "schedule (*.zps, zps1:...)"});
    flags.add_switch("torch", is_torch_, "write a Python script, the only form");
    flags.add_value("framework", framework_,
                    {"NAME",
                     "deepspeed (default), ddp, fsdp2; torch is ddp",
                     {"deepspeed", "ddp", "fsdp2", "torch"}});
    add_policy_flag(flags, policy_,
                    "claim the properties that this policy breaks in PyTorch's order, minimised");
    flags.add_value("mode", mode_,
                    {"MODE",
                     "graph_task_callback or count_fallback",
                     {"graph_task_callback", "count_fallback"}});
    flags.add_value("property", property_, {"P", "claim this property alone: P7, or its id"});
    flags.add_switch("no-minimize", keeps_size_, "export the scenario as it is in its file");
    flags.add_value("stage", stage_, {"N", "ZeRO stage 1 to 3 (default 1)", {"1", "2", "3"}});
    flags.add_value("world-size", world_, {"N", "ranks of the script (default 1)"});
    flags.add_value("gas", gas_, {"N", "gradient accumulation steps (default 1)"});
    flags.add_switch("overlap-comm", has_overlap_, "DeepSpeed: overlap_comm");
    flags.add_switch("find-unused-parameters", has_unused_, "DDP: find_unused_parameters");
    flags.add_switch("static-graph", has_static_graph_, "DDP: static_graph");
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.size() != 1)
      return fail(ErrorCode::usage, "export: name one scenario, finding or schedule");
    if (!is_torch_)
      return fail(ErrorCode::usage, "export: say --torch: a Python script is the form there is");
    ExportTargetOptions wanted{.policy = policy_, .property = property_, .minimizes = !keeps_size_};
    if (!mode_.empty()) wanted.mode = *policy_mode_of(mode_);
    auto target = export_target(words_.front(), wanted);
    if (!target) return tl::unexpected(target.error());
    target_ = std::move(*target);
    const auto options = script_options(session);
    if (!options) return tl::unexpected(options.error());
    auto script = torch_script(target_.scenario, *options);
    if (!script) return tl::unexpected(script.error());
    script_ = std::move(*script);
    if (auto written = publish(session); !written) return tl::unexpected(written.error());
    return VerbResult{.text = [this] { return text(); },
                      .json = [this] { return json(); },
                      .has_written_out = true};
  }

 private:
  Result<TorchScriptOptions> script_options(const Session& session) const {
    TorchScriptOptions options{.mode = target_.mode,
                               .has_overlap = has_overlap_,
                               .has_unused_detection = has_unused_,
                               .has_static_graph = has_static_graph_,
                               .claims = target_.claims};
    const auto framework = script_framework_of(framework_);
    if (!framework) return tl::unexpected(framework.error());
    options.framework = *framework;
    for (const auto& [text, flag, value] :
         {std::tuple(stage_, "--stage", &options.stage),
          std::tuple(world_, "--world-size", &options.world_size),
          std::tuple(gas_, "--gas", &options.accumulation_steps)}) {
      const auto count = parse_count(text, fmt::format("export: {}", flag));
      if (!count) return tl::unexpected(count.error());
      if (*count < 1 || *count > 64)
        return fail(ErrorCode::usage, fmt::format("export: {} {}: 1 to 64", flag, *count));
      *value = static_cast<std::int64_t>(*count);
    }
    if (options.framework != ScriptFramework::deepspeed && !target_.policy.empty())
      return fail(
          ErrorCode::usage,
          fmt::format("export: --policy {}: policies are DeepSpeed's; leave --framework {} out",
                      target_.policy, framework_));
    options.note = note(session);
    return options;
  }

  std::string note(const Session& session) const {
    std::string text = fmt::format("Written by: {} {}\n", session.program, session.arguments);
    if (!target_.policy.empty()) text += fmt::format("Policy {}.", target_.policy);
    if (const auto info = find_policy(target_.policy); info && (*info)->releases)
      text += fmt::format(" It is that of DeepSpeed {}.", (*info)->releases_text());
    if (target_.is_minimized) text += " Minimised: no event can be left out.";
    return text + "\n";
  }

  // Checks the script in a file of its own, then puts it where it was asked for.
  Result<void> publish(const Session& session) {
    if (auto checked = check_syntax(); !checked) return checked;
    for (const std::string& number : target_.elsewhere)
      session.say(
          fmt::format("export: {} needs an order that PyTorch does not take on one thread; the "
                      "script does not claim it",
                      number));
    if (!is_checked_) session.say("export: no python3 here: the script was not syntax-checked");
    if (session.common.out_dir.empty()) return {};
    path_ = session.common.out_dir;
    if (!path_.ends_with(".py")) {
      if (auto made = make_folder(path_); !made) return made;
      path_ += fmt::format("/{}-{}.py", target_.scenario.id, framework_);
    }
    return write_file_atomically(path_, script_);
  }

  Result<void> check_syntax() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "zeroproof-export-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr)
      return fail(ErrorCode::usage, fmt::format("{}: cannot make a temporary folder", folder));
    const std::string file = folder + "/script.py";
    auto written = write_file_atomically(file, script_);
    const auto complaint = written ? python_complaint(file, is_checked_) : std::nullopt;
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (!written) return written;
    ZP_CHECK(!complaint, "python3 refuses the exported script: " + complaint.value_or(""));
    return {};
  }

  std::string text() const {
    if (path_.empty()) return script_;
    std::string claims;
    for (const auto& [number, statement] : target_.claims)
      claims += fmt::format("  claims {}: {}\n", number, statement);
    if (claims.empty())
      claims = "  claims no property: it shows any difference from plain PyTorch\n";
    return fmt::format("{}: {} under {}, {}\n{}run it: python3 {}\n", path_, target_.scenario.id,
                       framework_, is_checked_ ? "syntax checked" : "syntax not checked", claims,
                       path_);
  }

  std::string json() const {
    OrderedJson claims = OrderedJson::array();
    for (const auto& [number, statement] : target_.claims)
      claims.push_back({{"number", number}, {"statement", statement}});
    return document_text<OrderedJson>(
        {{"schema", "zeroproof.export/1"},
         {"scenario", target_.scenario.id},
         {"framework", framework_},
         {"policy", target_.policy},
         {"minimized", target_.is_minimized},
         {"claims", claims},
         {"not_claimed", target_.elsewhere},
         {"syntax_checked", is_checked_},
         {"path", path_.empty() ? OrderedJson(nullptr) : OrderedJson(path_)},
         {"script", script_}});
  }

  std::vector<std::string> words_;
  bool is_torch_ = false;
  std::string framework_ = "deepspeed";
  std::string policy_;
  std::string mode_;
  std::string property_;
  bool keeps_size_ = false;
  std::string stage_ = "1";
  std::string world_ = "1";
  std::string gas_ = "1";
  bool has_overlap_ = false;
  bool has_unused_ = false;
  bool has_static_graph_ = false;
  ExportTarget target_;
  std::string script_;
  std::string path_;
  bool is_checked_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_export() {
  return std::make_unique<ExportVerb>();
}

}  // namespace zeroproof
