#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// One tensor as a file that explains itself: a line of JSON (schema, name, dtype, shape), then the
// elements, little-endian and row-major. Stored in `dtype` if every bit of every value survives
// that, else in float64.
std::string tensor_bytes(const FullTensor& tensor, DType dtype);

// `path` is for messages; code unreadable.
Result<FullTensor> parse_tensor(std::string_view bytes, const std::string& path);

// The first line of a tensor file.
struct TensorHeader {
  std::string name;
  DType dtype = DType::float32;
  Shape sizes;
};

// With its line break.
std::string tensor_header_text(const TensorHeader& header);

// A header is shorter than this: names are those of files, and shapes have few sizes.
inline constexpr std::size_t kTensorHeaderBytesMax = std::size_t{1} << 16;

struct ParsedTensorHeader {
  TensorHeader header;
  std::size_t bytes = 0;  // of the line, with its break
};

// Of a file's beginning; what follows the line is not looked at.
Result<ParsedTensorHeader> parse_tensor_header(std::string_view beginning, const std::string& path);

// Elements as bytes of a tensor file and back; `bytes` is a multiple of the element's.
std::string element_bytes(const std::vector<double>& values, DType dtype);
std::vector<double> element_values(std::string_view bytes, DType dtype);

}  // namespace zeroproof
