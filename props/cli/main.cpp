#include <fmt/format.h>

int main() {
  fmt::print("zeroproof {}\n", ZP_VERSION);
  return 0;
}
