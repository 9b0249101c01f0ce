// What ran on the GPUs of a process, and when: a line a kernel, copy or fill, to $ZP_KERNEL_TRACE.
// The driver loads this library into any process whose CUDA_INJECTION64_PATH names it
// (bench/cuda/kernels.sh does); kernel_table.py reads it.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;

std::FILE* out = nullptr;

void write_line(std::uint32_t device, std::uint32_t stream, std::uint64_t start, std::uint64_t end,
                const char* name) {
  std::fprintf(out, "%u\t%u\t%llu\t%llu\t%s\n", device, stream,
               static_cast<unsigned long long>(start), static_cast<unsigned long long>(end), name);
}

void write_record(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* of = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    write_line(of->deviceId, of->streamId, of->start, of->end, of->name);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* of = reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
    const std::string name = "memcpy " + std::to_string(of->bytes);
    write_line(of->deviceId, of->streamId, of->start, of->end, name.c_str());
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* of = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    write_line(of->deviceId, of->streamId, of->start, of->end, "memset");
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) write_record(record);
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(1);
  std::fclose(out);
}

}  // namespace

extern "C" int InitializeInjection() {
  const char* path = std::getenv("ZP_KERNEL_TRACE");
  out = std::fopen(path == nullptr ? "/dev/null" : path, "w");
  if (out == nullptr) return 0;
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    cuptiActivityEnable(kind);
  std::atexit(finish);
  return 1;
}
