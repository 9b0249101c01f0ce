#include "sim/hook_order/property.h"

#include <array>
#include <cstddef>

namespace zeroproof::hook_order {
namespace {

constexpr std::array<std::string_view, kProperties> kNames = {"none", "A1", "A2", "A3", "A4",
                                                              "A5",   "A6", "A7", "A8"};
constexpr std::array<std::string_view, kProperties> kStatements = {
    "no property is violated",
    "the epilogue runs exactly once in each backward",
    "no hook comes after the epilogue",
    "every bucket is reduced when the epilogue returns, and is used only after that",
    "the j-th collective is the same on all ranks",
    "every rank comes to its end",
    "the window has each rank's contribution to each element exactly once a backward",
    "an aborted backward leaves no state",
    "the engine refuses no call",
};

}  // namespace

std::string_view property_name(Property property) {
  return kNames[static_cast<std::size_t>(property)];
}
std::string_view property_statement(Property property) {
  return kStatements[static_cast<std::size_t>(property)];
}

}  // namespace zeroproof::hook_order
