// What ran on the GPUs of a process, and when: a line a kernel, copy or fill, to $ZP_KERNEL_TRACE.
// With $ZP_CALL_COUNTS instead how often the process called CUDA's runtime and driver, a line a
// function. The driver loads this library into any process whose CUDA_INJECTION64_PATH names it
// (bench/cuda/kernels.sh does); kernel_table.py reads it.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;

std::FILE* out = nullptr;
struct Calls {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;  // of all threads together
};
std::map<std::string, Calls> calls;

void count_call(CUpti_CallbackDomain domain, const CUpti_Activity* record) {
  const auto* of = reinterpret_cast<const CUpti_ActivityAPI*>(record);
  const char* name = nullptr;
  if (cuptiGetCallbackName(domain, of->cbid, &name) != CUPTI_SUCCESS || name == nullptr) name = "?";
  const bool is_runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  Calls& known = calls[(is_runtime ? "runtime\t" : "driver\t") + std::string(name)];
  ++known.count;
  known.ns += of->end - of->start;
}

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
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {  // from another GPU
    const auto* of = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record);
    const std::string name = "memcpy peer " + std::to_string(of->bytes);
    write_line(of->deviceId, of->streamId, of->start, of->end, name.c_str());
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* of = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    write_line(of->deviceId, of->streamId, of->start, of->end, "memset");
  } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    count_call(CUPTI_CB_DOMAIN_RUNTIME_API, record);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    count_call(CUPTI_CB_DOMAIN_DRIVER_API, record);
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
  for (const auto& [name, of] : calls)
    std::fprintf(out, "%s\t%llu\t%llu\n", name.c_str(), static_cast<unsigned long long>(of.count),
                 static_cast<unsigned long long>(of.ns));
  std::fclose(out);
}

}  // namespace

extern "C" int InitializeInjection() {
  const char* counts = std::getenv("ZP_CALL_COUNTS");
  const char* path = counts != nullptr ? counts : std::getenv("ZP_KERNEL_TRACE");
  out = std::fopen(path == nullptr ? "/dev/null" : path, "w");
  if (out == nullptr) return 0;
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  using Kinds = std::initializer_list<CUpti_ActivityKind>;
  const Kinds calls_alone = {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};
  const Kinds work = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                      CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
  for (const CUpti_ActivityKind kind : counts != nullptr ? calls_alone : work)
    cuptiActivityEnable(kind);
  std::atexit(finish);
  return 1;
}
