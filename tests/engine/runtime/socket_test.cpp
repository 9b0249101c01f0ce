// Messages of peers that are slow, silent or lie about their length.
#include "engine/runtime/process/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace zeroproof {
namespace {

using Ms = std::chrono::milliseconds;

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Eight bytes that announce 4 GiB.
constexpr std::string_view kAnnouncement("\0\0\0\0\1\0\0\0", 8);

int raw_connection(const Listener& to) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(to.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(0, ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address));
  return descriptor;
}

TEST(Socket, Takes_memory_for_bytes_that_come_and_not_for_those_announced) {
  auto listener = Listener::open("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  std::size_t largest = 0;
  std::jthread watcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) largest = std::max(largest, resident_bytes());
  });
  const std::size_t before = resident_bytes();
  const int other = raw_connection(*listener);
  auto socket = listener->accept();
  ASSERT_TRUE(socket);
  EXPECT_EQ(8, ::send(other, kAnnouncement.data(), kAnnouncement.size(), 0));
  ::shutdown(other, SHUT_WR);
  EXPECT_EQ(std::nullopt, socket->receive());
  watcher = {};
  ::close(other);
  EXPECT_GT(before + (std::size_t{64} << 20U), largest);
}

TEST(Socket, Stops_receiving_in_time_however_slowly_bytes_come) {
  auto listener = Listener::open("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const int slow = raw_connection(*listener);
  auto socket = listener->accept();
  ASSERT_TRUE(socket);
  ASSERT_EQ(8, ::send(slow, kAnnouncement.data(), kAnnouncement.size(), 0));
  std::jthread dripping([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      ::send(slow, "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(Ms(5));
    }
  });
  EXPECT_EQ(std::nullopt, socket->receive({.at_most = Ms(100)}));
  dripping = {};
  ::close(slow);
}

// A queue of callers that are not accepted: a further one gets no answer from the kernel.
TEST(Socket, Stops_connecting_in_time_where_nobody_answers) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(0, ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size));
  ASSERT_EQ(0, ::listen(descriptor, 0));
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  std::vector<Socket> queued;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    auto socket = connect_to("127.0.0.1", ntohs(address.sin_port), Ms(200));
    if (!socket) break;
    queued.push_back(std::move(*socket));
    ASSERT_GT(50U, queued.size());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Ms(20'000));
  ::close(descriptor);
}

TEST(Socket, Asks_for_a_hosts_address_again_and_again) {
  const auto begin = std::chrono::steady_clock::now();
  const auto socket = connect_to("no such host", 1, Ms(120));
  ASSERT_FALSE(socket);
  EXPECT_EQ(ErrorCode::usage, socket.error().code);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Ms(120));
}

}  // namespace
}  // namespace zeroproof
