#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zeroproof {

// A file that another process writes while it is read. A test gives its own bytes.
class GrowingBytes {
 public:
  virtual ~GrowingBytes() = default;

  // Another number: the file was replaced by another of its name. 0: there is no such file.
  virtual std::uint64_t identity() = 0;
  virtual std::uint64_t size() = 0;
  // The bytes from `offset` on, at most `count`; fewer at the end.
  virtual std::string read_at(std::uint64_t offset, std::size_t count) = 0;
};

using OpenGrowing = std::function<std::unique_ptr<GrowingBytes>(const std::string& path)>;

}  // namespace zeroproof
