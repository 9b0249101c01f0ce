#include "props/cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>

#include "model/nearest_name.h"
#include "props/cli/help_page.h"

namespace zeroproof {
namespace {

constexpr const char* kOwnFlags = "flags";

}  // namespace

struct Flags::Model {
  explicit Model(const std::string& program) : app("", program) {}

  CLI::App app;
  std::string summary;
  std::string examples;
  std::string group = kOwnFlags;                            // of the flags that are added now
  std::map<std::string, std::vector<std::string>> allowed;  // by "--name"
};

namespace {

using Canonical = std::function<Result<std::string>(const std::string&)>;

CLI::Validator one_of(std::vector<std::string> allowed, Canonical canonical) {
  return CLI::Validator(
      [allowed = std::move(allowed), canonical = std::move(canonical)](std::string& value) {
        if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return std::string();
        if (canonical) {
          auto spelling = canonical(value);
          if (!spelling) return spelling.error().text;
          value = std::move(*spelling);
          return std::string();
        }
        const std::vector<std::string_view> known(allowed.begin(), allowed.end());
        return fmt::format("unknown value '{}': {}", value, did_you_mean(value, known));
      },
      "", "one_of");
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::string dashed(std::string_view name) {
  return fmt::format("--{}", name);
}

// An error about a flag that only the environment set should say where the value came from.
std::string with_origin(std::string text, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const char* value =
        option->get_envname().empty() ? nullptr : getenv(option->get_envname().c_str());
    if (value != nullptr && text.find(name + ":") != std::string::npos) {
      text += fmt::format(" (the environment sets {}={})", option->get_envname(), value);
    }
  }
  return text;
}

}  // namespace

std::string environment_name(std::string_view flag) {
  std::string name = "ZP_";
  for (const char c : flag) {
    name.push_back(c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return name;
}

Flags::Flags(const std::string& program, std::string_view summary, std::string_view examples)
    : model_(std::make_unique<Model>(program)) {
  model_->summary = summary;
  model_->examples = examples;
  model_->app.set_help_flag();
  model_->app.allow_extras();  // reported by reject_unknown, with a suggestion
}

Flags::~Flags() = default;

void Flags::begin_group(std::string_view heading) {
  model_->group = heading;
}

void Flags::add_switch(std::string_view name, bool& is_on, std::string_view text) {
  model_->app.add_flag(dashed(name), is_on, std::string(text))
      ->envname(environment_name(name))
      ->group(model_->group);
}

void Flags::add_value(std::string_view name, std::string& value, const FlagHelp& help) {
  CLI::Option* option = model_->app.add_option(dashed(name), value, std::string(help.text));
  option->type_name(std::string(help.value))->envname(environment_name(name));
  option->group(model_->group);
  if (help.allowed.empty()) return;
  std::vector<std::string> allowed(help.allowed.begin(), help.allowed.end());
  model_->allowed[dashed(name)] = allowed;
  option->transform(one_of(std::move(allowed), help.canonical));
}

void Flags::add_former_name(std::string_view name, std::string_view former) {
  CLI::Option* option = model_->app.get_option(dashed(name));
  const auto pass_on = [option](const std::string& value) {
    option->clear();
    option->add_result(value);
    option->run_callback();
  };
  CLI::Option* other = model_->app.add_option_function<std::string>(dashed(former), pass_on);
  other->group("")->envname(environment_name(former));
}

void Flags::add_list(std::string_view name, std::vector<std::string>& values,
                     const FlagHelp& help) {
  model_->app.add_option(dashed(name), values, std::string(help.text))
      ->type_name(std::string(help.value))
      ->envname(environment_name(name))
      ->group(model_->group)
      ->delimiter(',')
      ->allow_extra_args(false);
}

void Flags::add_words(std::vector<std::string>& words, const FlagHelp& help) {
  model_->app.add_option(std::string(help.value), words, std::string(help.text));
}

Result<void> Flags::parse(std::span<const std::string> words) {
  try {
    model_->app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::usage, with_origin(error.what(), model_->app));
  }
  return reject_unknown();
}

Result<void> Flags::reject_unknown() const {
  const std::vector<std::string> unknown = model_->app.remaining();
  if (unknown.empty()) return {};
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  if (!name.starts_with('-')) {
    return fail(ErrorCode::usage, fmt::format("unexpected word '{}'", name));
  }
  const std::vector<FlagInfo> flags = list();
  std::vector<std::string_view> known;
  for (const FlagInfo& flag : flags) known.push_back(flag.name);
  return fail(ErrorCode::usage,
              fmt::format("unknown flag '{}': {}", name, did_you_mean(name, known)));
}

std::string Flags::help() const {
  HelpPage page{.usage = model_->app.get_name(),
                .summary = model_->summary,
                .groups = {{"words", {}}},
                .examples = model_->examples};
  for (const CLI::Option* option : model_->app.get_options()) {
    if (option->get_group().empty()) continue;  // a former name
    std::string name = option->get_name();
    if (option->get_positional()) {
      page.usage += fmt::format(" [{}...]", name);
    } else if (takes_value(*option)) {
      name += " " + option->get_type_name();
    }
    const std::string heading = option->get_positional() ? "words" : option->get_group();
    page.group(heading).rows.push_back({std::move(name), option->get_description()});
  }
  page.usage += " [flags]";
  return help_text(page);
}

std::vector<FlagInfo> Flags::list() const {
  std::vector<FlagInfo> flags;
  for (const CLI::Option* option : model_->app.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    FlagInfo flag{.name = option->get_name(),
                  .text = option->get_description(),
                  .takes_value = takes_value(*option)};
    if (const auto found = model_->allowed.find(flag.name); found != model_->allowed.end()) {
      flag.allowed = found->second;
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

}  // namespace zeroproof
