#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/result.h"

namespace CLI {  // NOLINT: the library's name
class App;
}

namespace zeroproof {

// What the help says about a flag. `value` names its argument; `allowed` lists the legal ones
// when they are few. `canonical` turns other spellings into a legal one, or says what is wrong.
struct FlagHelp {
  std::string_view value;
  std::string_view text;
  std::vector<std::string_view> allowed = {};
  std::function<Result<std::string>(const std::string&)> canonical = {};
};

// One flag as completion needs it.
struct FlagInfo {
  std::string name;  // "--policy"
  std::string text;
  bool takes_value = false;
  std::vector<std::string> allowed;
};

// The flags of one verb. Each can also be given as ZP_<FLAG> in the environment; the command line
// wins. Variables that are bound must outlive the object.
class Flags {
 public:
  // The usage line starts with `program`, for example "zeroproof replay".
  Flags(const std::string& program, std::string_view summary, std::string_view examples);
  ~Flags();

  // The help prints flags that are added from here on under this heading; "flags" before.
  void begin_group(std::string_view heading);

  // `name` without the leading dashes.
  void add_switch(std::string_view name, bool& is_on, std::string_view text);
  void add_value(std::string_view name, std::string& value, const FlagHelp& help);
  void add_list(std::string_view name, std::vector<std::string>& values, const FlagHelp& help);
  // Another name of a flag that takes a value, which help and completion leave out.
  void add_former_name(std::string_view name, std::string_view former);
  void add_words(std::vector<std::string>& words, const FlagHelp& help);

  // Code usage; says which flag was probably meant.
  Result<void> parse(std::span<const std::string> words);

  std::string help() const;

  // Walks the model of flags, in order of declaration.
  std::vector<FlagInfo> list() const;

 private:
  struct Model;
  Result<void> reject_unknown() const;

  std::unique_ptr<Model> model_;
};

// "ZP_NO_MINIMIZE" for "no-minimize".
std::string environment_name(std::string_view flag);

}  // namespace zeroproof
