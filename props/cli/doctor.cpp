// `zeroproof doctor`: what this build and this machine have and lack.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/runtime/registry.h"
#include "props/cli/bundled_data.h"
#include "props/cli/verb.h"
#include "props/report/table.h"
#include "props/scenario.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson build() {
#ifdef __clang__
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return {{"version", ZP_VERSION},
          {"compiler", compiler},
          {"type", ZP_BUILD_TYPE},
          {"sanitizers", ZP_SANITIZERS}};
}

// "fmt=9.1.0;..." as CMake found them.
OrderedJson libraries() {
  OrderedJson list = OrderedJson::object();
  std::string_view rest = ZP_LIBRARIES;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    list[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
  }
  return list;
}

OrderedJson machine() {
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  return {{"cores", std::thread::hardware_concurrency()}, {"memory_bytes", page_bytes * pages}};
}

OrderedJson known_runtimes() {
  OrderedJson known = OrderedJson::object();
  for (const RuntimeInfo& info : runtimes())
    known[std::string(info.name)] = info.is_available ? "available" : std::string(info.reason);
  known["gpus"] = visible_gpus();
  return known;
}

// Switches that decide whether a GPU job repeats bit for bit; the simulator does not need them.
OrderedJson determinism() {
  OrderedJson list = OrderedJson::object();
  for (const char* name : {"CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "NCCL_ALGO",
                           "NCCL_PROTO", "NCCL_NVLS_ENABLE"}) {
    const char* value = getenv(name);
    list[name] = value == nullptr ? OrderedJson(nullptr) : OrderedJson(value);
  }
  return list;
}

OrderedJson environment_entries() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with("ZP_")) entries.emplace_back(*entry);
  }
  std::sort(entries.begin(), entries.end());
  OrderedJson list = OrderedJson::object();
  for (const std::string& entry : entries) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    list[entry.substr(0, equals)] = entry.substr(std::min(equals + 1, entry.size()));
  }
  return list;
}

OrderedJson data() {
  const std::string traces = bundled_traces_folder();
  return {{"scenarios", fmt::format("{} built in", builtin_scenarios().size())},
          {"traces", traces.empty() ? OrderedJson(nullptr) : OrderedJson(traces)}};
}

std::string cell_text(const OrderedJson& value) {
  if (value.is_null()) return "not set";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const OrderedJson& document, const Palette& palette) {
  std::string page;
  for (const auto& [section, entries] : document.items()) {
    if (!entries.is_object()) continue;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [key, value] : entries.items()) rows.push_back({key, cell_text(value)});
    if (rows.empty()) rows.push_back({"none"});
    page += palette.title(section) + "\n" + table_text(rows);
  }
  return page;
}

class DoctorVerb final : public Verb {
 public:
  void declare(Flags&) override {}

  Result<VerbResult> run(Session& session) override {
    const OrderedJson document = {
        {"schema", "zeroproof.doctor/1"}, {"build", build()},
        {"libraries", libraries()},       {"machine", machine()},
        {"runtimes", known_runtimes()},   {"data", data()},
        {"determinism", determinism()},   {"environment", environment_entries()}};
    return VerbResult{
        .text = [document, palette = session.palette] { return text_of(document, palette); },
        .json =
            [document] {
              return document.dump(1, ' ', false, OrderedJson::error_handler_t::replace);
            }};
  }
};

}  // namespace

std::unique_ptr<Verb> make_doctor() {
  return std::make_unique<DoctorVerb>();
}

}  // namespace zeroproof
