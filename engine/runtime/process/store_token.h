#pragma once

#include <string>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof {

// Where the processes of a job have the secret of its TCP store from. The store serves only callers
// that say it.
struct StoreToken {
  std::string text = {};  // as a launcher handed it over; empty: it is in the file
  std::string file = {};  // of this user, unreadable for others
  bool is_made = false;   // rank 0 makes the file new; otherwise it is there before the job
};

// For rank 0, before it listens: the others may read the file as soon as rank 0 does. Usage: names
// the file and what is wrong with it.
Result<std::string> offer_token(const StoreToken& token);
// For the others, once rank 0 listens.
Result<std::string> read_token(const StoreToken& token);

// In a time that does not say how many bytes are right.
bool is_same_token(std::string_view a, std::string_view b);

}  // namespace zeroproof
