#include "zeroproof/model/result.h"

#include "model/one_line.h"

namespace zeroproof {

Error::Error(ErrorCode of, std::string message) : code(of), text(one_line(std::move(message))) {}

}  // namespace zeroproof
