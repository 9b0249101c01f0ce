#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/ds_config.h"
#include "engine/config/json_value.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What becomes of a key of ds_config.json.
enum class KeyUse : std::uint8_t {
  modelled,  // read
  block,     // an object whose keys stand in this table too
  ignored,   // has no effect on what is computed here; reported once
  refused,   // would change gradients: an error when it is on, else ignored
  removed,   // DeepSpeed 0.19.8 raises where the key is there, whatever its value
};

struct ConfigKey {
  std::string_view section;  // JSON pointer of the object it lies in; "" is the document
  std::string_view name;
  KeyUse use;
  std::string_view note;  // what it does; of a refused key the error, id first where it has one;
                          // of a removed key what was removed
  std::string_view off = {};  // of a refused key: the value, or greatest number, that is off too
};

// Every key that DeepSpeed knows, in the order of docs/reference/config.md. Static.
std::span<const ConfigKey> config_keys();
std::string_view key_use_name(KeyUse use);  // "modelled"; static

// Where the walk over a document's keys leaves what it finds, in the document's order.
struct KeyFindings {
  std::vector<std::string>& ignored;  // JSON pointers of keys that are not modelled
  std::vector<ConfigNote>& notes;     // unknown keys that DeepSpeed ignores
};

// The first key of the document that is refused, removed, a block that is no object, or unknown
// where DeepSpeed raises too; with `unknown` at refuse every unknown key. `optimizer` picks the
// section of /optimizer/params: "adam" or "sgd".
Result<void> check_config_keys(const JsonValue& document, std::string_view optimizer,
                               const std::string& source, UnknownKeys unknown,
                               const KeyFindings& findings);

}  // namespace zeroproof
