// `zeroproof checkpoint`: what a checkpoint holds, whether it is whole, and its other layout.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/convert_checkpoint.h"
#include "engine/checkpoint/verify_checkpoint.h"
#include "engine/files/posix_file_system.h"
#include "model/nearest_name.h"
#include "props/cli/checkpoint_summary.h"
#include "props/cli/counted_files.h"
#include "props/cli/interrupt.h"
#include "props/cli/shell_quote.h"
#include "props/cli/verb.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kActions = {"inspect", "verify", "convert"};
constexpr std::uint64_t kRanksMax = 1U << 16;

std::string verified_text(const VerifiedCheckpoint& found) {
  std::string text;
  for (const FileProblem& problem : found.problems)
    text += fmt::format("{}: {}\n", problem.path, problem.text);
  return text + fmt::format("{}: {} files with {} bytes read, {} {}\n", found.path, found.files,
                            found.bytes, found.problems.size(),
                            found.problems.size() == 1 ? "problem" : "problems");
}

std::string verified_json(const VerifiedCheckpoint& found) {
  OrderedJson problems = OrderedJson::array();
  for (const FileProblem& problem : found.problems)
    problems.push_back({{"path", problem.path}, {"kind", problem.kind}, {"text", problem.text}});
  return document_text<OrderedJson>({{"schema", "zeroproof.checkpoint_verify/1"},
                                     {"checkpoint", found.path},
                                     {"files", found.files},
                                     {"bytes", found.bytes},
                                     {"interrupted", found.is_stopped},
                                     {"problems", std::move(problems)}});
}

// Says how many bytes of a checkpoint were read.
class ReadProgress {
 public:
  ReadProgress(const Session& session, std::string task)
      : progress_(session.common.progress),
        view_{.task = std::move(task), .unit = "MB", .findings = {}} {}

  RangedFileSystem& files() { return files_; }
  void finish() { progress_.finish(view_); }

 private:
  void add(std::size_t bytes) {
    constexpr std::uint64_t kMega = 1'000'000;
    bytes_ += bytes;
    view_.runs = bytes_ / kMega;
    progress_.update([this] { return view_; });
  }

  ProgressLine progress_;
  ProgressView view_;
  std::uint64_t bytes_ = 0;
  CountedFiles files_{posix_file_system(), [this](std::size_t bytes) { add(bytes); }};
};

class CheckpointVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"WORD",
                             "inspect DIR, verify DIR, or convert DIR OUT. DIR is the folder of a "
                             "job's checkpoints, or one checkpoint in it"});
    flags.add_value("tag", tag_, {"TAG", "checkpoint of DIR (default: the latest)"});
    flags.add_value("to", to_,
                    {"LAYOUT",
                     "convert: to whole tensors (universal), or to a shard for each rank (shards)",
                     {"universal", "shards"}});
    flags.add_value("ranks", ranks_, {"N", "convert --to shards: number of data-parallel ranks"});
    flags.add_value("tensor-ranks", tensor_ranks_,
                    {"N",
                     "convert: number of tensor-parallel ranks; its partition rules say how "
                     "parameters are cut (default: as many as saved it)"});
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.empty())
      return fail(ErrorCode::usage, "checkpoint: name inspect, verify or convert");
    const std::string& action = words_.front();
    const bool is_convert = action == "convert";
    if (std::ranges::find(kActions, action) == kActions.end())
      return fail(ErrorCode::usage, fmt::format("checkpoint: unknown action '{}': {}", action,
                                                did_you_mean(action, kActions)));
    if (words_.size() != (is_convert ? 3U : 2U))
      return fail(ErrorCode::usage, is_convert ? "checkpoint convert: name a folder to read and "
                                                 "one to write"
                                               : "checkpoint: name one folder");
    if (!is_convert && !(to_ + ranks_ + tensor_ranks_).empty())
      return fail(ErrorCode::usage, "checkpoint: --to, --ranks and --tensor-ranks are of convert");
    if (is_convert) return convert(session);
    return action == "verify" ? verify(session) : inspect(session);
  }

 private:
  Result<VerbResult> inspect(const Session& session) {
    auto summary = summarize_checkpoint(posix_file_system(), words_[1], tag_);
    if (!summary) return tl::unexpected(summary.error());
    const auto kept = std::make_shared<CheckpointSummary>(std::move(*summary));
    return VerbResult{.text = [kept, palette = session.palette] { return text_of(*kept, palette); },
                      .json = [kept] { return json_of(*kept); },
                      .next = "checkpoint verify " + shell_quote(words_[1])};
  }

  Result<VerbResult> verify(const Session& session) {
    ReadProgress progress(session, "checkpoint verify");
    auto verified = verify_checkpoint(progress.files(), words_[1], tag_, was_interrupted);
    if (!verified) return tl::unexpected(verified.error());
    progress.finish();
    const auto kept = std::make_shared<VerifiedCheckpoint>(std::move(*verified));
    return VerbResult{.code = kept->problems.empty() ? ExitCode::held : ExitCode::falsified,
                      .text = [kept] { return verified_text(*kept); },
                      .json = [kept] { return verified_json(*kept); },
                      .next = fmt::format("checkpoint convert {} OUT --to shards --ranks N",
                                          shell_quote(words_[1]))};
  }

  // 0: the flag was not given.
  static Result<int> count_of_ranks(const std::string& flag, const std::string& text) {
    if (text.empty()) return 0;
    const auto ranks = parse_count(text, "checkpoint convert: " + flag);
    if (!ranks) return tl::unexpected(ranks.error());
    if (*ranks >= 1 && *ranks <= kRanksMax) return static_cast<int>(*ranks);
    return fail(ErrorCode::usage, fmt::format("checkpoint convert: {} {}: give a number from 1 to "
                                              "{}",
                                              flag, text, kRanksMax));
  }

  Result<ConvertOptions> convert_options() const {
    if (to_.empty())
      return fail(ErrorCode::usage, "checkpoint convert: name --to universal or --to shards");
    if (to_ == "universal" && !ranks_.empty())
      return fail(ErrorCode::usage, "checkpoint convert: --ranks is of --to shards");
    if (to_ == "shards" && ranks_.empty())
      return fail(ErrorCode::usage, "checkpoint convert: --to shards needs --ranks N");
    const auto data = count_of_ranks("--ranks", ranks_);
    if (!data) return tl::unexpected(data.error());
    const auto tensor = count_of_ranks("--tensor-ranks", tensor_ranks_);
    if (!tensor) return tl::unexpected(tensor.error());
    return ConvertOptions{
        .tag = tag_, .data_ranks = *data, .tensor_ranks = *tensor, .should_stop = was_interrupted};
  }

  Result<VerbResult> convert(const Session& session) {
    const auto options = convert_options();
    if (!options) return tl::unexpected(options.error());
    ReadProgress progress(session, "checkpoint convert");
    const auto made = convert_checkpoint(progress.files(), words_[1], words_[2], *options);
    if (!made) return tl::unexpected(made.error());
    progress.finish();
    return VerbResult{
        .text = [path = *made] { return path + "\n"; },
        .json =
            [this, path = *made, data = options->data_ranks, tensor = options->tensor_ranks] {
              return document_text<OrderedJson>(
                  {{"schema", "zeroproof.checkpoint_convert/1"},
                   {"input", words_[1]},
                   {"output", path},
                   {"layout", to_},
                   {"data_parallel_size", data > 0 ? OrderedJson(data) : OrderedJson()},
                   {"tensor_parallel_size", tensor > 0 ? OrderedJson(tensor) : OrderedJson()}});
            },
        .next = "checkpoint verify " + shell_quote(words_[2])};
  }

  std::vector<std::string> words_;
  std::string tag_;
  std::string to_;
  std::string ranks_;
  std::string tensor_ranks_;
};

}  // namespace

std::unique_ptr<Verb> make_checkpoint() {
  return std::make_unique<CheckpointVerb>();
}

}  // namespace zeroproof
