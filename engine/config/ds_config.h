#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

enum class ConfigNoteKind : std::uint8_t {
  unknown,         // a key that DeepSpeed ignores; the text is empty or a suggestion
  automatic,       // "auto"; the text is what became of it
  converted,       // of another type than it should be, and taken as DeepSpeed takes it
  batch_size,      // follows from other sizes, or from a default
  without_effect,  // DeepSpeed accepts it and does not use it
  replaced,        // the run has another value, for the text's reason
};

// What a reader of the document should know although the document is accepted.
struct ConfigNote {
  ConfigNoteKind kind;
  std::string pointer;  // JSON pointer of the key
  std::string text;

  bool operator==(const ConfigNote&) const = default;
};

std::string_view config_note_kind_name(ConfigNoteKind kind);  // "without_effect"; static

// Unknown keys in places where DeepSpeed ignores them: at the top, and in a few blocks.
enum class UnknownKeys : std::uint8_t { note, refuse };

// A ds_config.json as DeepSpeed 0.19.8 reads it.
struct DsConfig {
  ParsedConfig parsed;
  std::vector<ConfigNote> notes;             // without those of batch sizes
  std::vector<std::string> automatic_sizes;  // names of batch sizes that are "auto"
  bool names_optimizer = false;              // else the optimizer is the caller's own
  bool allows_untested_optimizer = false;    // /zero_allow_untested_optimizer
  bool computes_grad_norm = true;            // /zero_optimization/compute_grad_norm
  double offload_ratio = 1.0;                // /zero_optimization/offload_optimizer/ratio
};

// Reads JSON or Hjson. `source` is the file's name, for messages. The errors are those of
// parse_ds_config, which leaves out the notes.
Result<DsConfig> read_ds_config(const std::string& text, const std::string& source,
                                UnknownKeys unknown);

// What an engine on so many ranks is made with, and what that adds to the notes.
struct RunConfig {
  ZeroConfig config;
  std::vector<ConfigNote> notes;
};

constexpr int kDocumentsStage = -1;  // in place of a stage: that of the document

// Completes the batch sizes, leaves out what DeepSpeed accepts without using it, and refuses in the
// words of validate() what DeepSpeed refuses. `stage` replaces the document's.
Result<RunConfig> run_config_of(const DsConfig& document, std::int64_t data_parallel_size,
                                int stage = kDocumentsStage);

}  // namespace zeroproof
