// The TCP store among callers that are not members, and members among stores that are not theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "engine/runtime/process/byte_strings.h"
#include "tests/engine/runtime/process_stores.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using Ms = std::chrono::milliseconds;

// What rank 0 takes from callers that are not members.
class OpenStore : public ::testing::Test {
 protected:
  static constexpr std::size_t kUnknownMax = 8;

  Socket caller() const {
    auto socket = connect_to("127.0.0.1", store_->port(), Ms(60'000));
    EXPECT_TRUE(socket);
    return std::move(*socket);
  }

  static std::string answer_to(Socket& socket, const std::vector<std::string>& request) {
    if (!socket.send(pack(request))) return "hung up";
    const auto message = socket.receive({.at_most = Ms(60'000)});
    const auto answer = message ? unpack(*message) : std::nullopt;
    return answer ? answer->front() : "hung up";
  }

  void expect_connections(std::size_t wanted) const {
    const auto end = std::chrono::steady_clock::now() + Ms(20'000);
    while (store_->connections() != wanted && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(Ms(5));
    EXPECT_EQ(wanted, store_->connections());
  }

  // Its own connections are the life of rank 0 and the one on which it asks.
  std::unique_ptr<TcpStore> store_ = [] {
    auto store = TcpStore::open({"127.0.0.1", 0, kTestToken}, {0, 2, "run"}, Ms(60'000),
                                {.hello = Ms(300), .unknown_callers = kUnknownMax});
    (*store)->set("secret", "x");
    return std::move(store.value());
  }();
};

TEST_F(OpenStore, Tells_and_does_nothing_for_whoever_does_not_know_the_token) {
  const std::vector<std::string> requests[] = {{"wait", "secret", "0"},
                                               {"set", "failed", "not true"},
                                               {"join", "run", "1", "2"},
                                               {"presences"},
                                               {"hello"},
                                               {"hello", ""},
                                               {"hello", "the token of a tes"},
                                               {"hello", "the token of a tesT"}};
  for (const auto& request : requests) {
    Socket socket = caller();
    EXPECT_EQ("refused", answer_to(socket, request));
    EXPECT_EQ("hung up", answer_to(socket, request));
  }
  EXPECT_EQ(std::nullopt, store_->wait("failed", Ms(0)));
  EXPECT_EQ(PeerState::absent, store_->presences()[1]);
}

TEST_F(OpenStore, Hangs_up_on_callers_that_say_nothing_or_too_much) {
  std::vector<Socket> callers;
  for (int i = 0; i < 4; ++i) callers.push_back(caller());
  EXPECT_TRUE(callers[0].send(std::string(5'000, 'x')));
  for (Socket& socket : callers) EXPECT_EQ(std::nullopt, socket.receive({.at_most = Ms(20'000)}));
  expect_connections(2);
}

TEST_F(OpenStore, Keeps_a_few_silent_callers_and_has_room_for_a_member) {
  std::vector<Socket> callers;
  for (int i = 0; i < 100; ++i) {
    callers.push_back(caller());
    EXPECT_GE(kUnknownMax + 3, store_->connections());
  }
  const auto member =
      TcpStore::open({"127.0.0.1", store_->port(), kTestToken}, {1, 2, "run"}, Ms(60'000));
  ASSERT_TRUE(member) << member.error().text;
  EXPECT_EQ("x", (*member)->wait("secret", Ms(0)));
}

class TokenFile : public ::testing::Test {
 protected:
  TokenFile() { folder_ = mkdtemp(name_.data()); }
  ~TokenFile() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/token"; }
  void write(const std::string& text, mode_t mode) const {
    { std::ofstream(path()) << text; }
    ::chmod(path().c_str(), mode);
  }
  std::string problem() const {
    const auto token = read_token({.file = path()});
    return token ? std::string() : token.error().text;
  }

 private:
  std::string name_ = ::testing::TempDir() + "zp-token-XXXXXX";
  std::string folder_;
};

TEST_F(TokenFile, Is_read_only_where_no_other_user_could_read_it) {
  write("0123456789abcdef\n", 0600);
  EXPECT_EQ("0123456789abcdef", read_token({.file = path()}).value());
  write("0123456789abcdef\n", 0640);
  EXPECT_THAT(problem(), HasSubstr("can be read by others: chmod 600"));
  write("0123456789abcde\n", 0600);
  EXPECT_THAT(problem(), HasSubstr("has 15 bytes: give 16 to 1024"));
  std::filesystem::remove(path());
  EXPECT_THAT(problem(), HasSubstr("No such file"));
  std::filesystem::create_symlink("/etc/passwd", path());
  EXPECT_THAT(problem(), HasSubstr("symbolic link"));
}

TEST_F(TokenFile, Of_rank_0_is_new_for_each_run) {
  const StoreToken token{.file = path(), .is_made = true};
  const auto first = offer_token(token);
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_EQ(*first, read_token(token).value());
  EXPECT_EQ(32U, first->size());
  EXPECT_NE(*first, offer_token(token).value());
  struct stat status = {};
  ASSERT_EQ(0, ::stat(path().c_str(), &status));
  EXPECT_EQ(0600U, status.st_mode & 0777U);
}

// A store that answers what it likes.
TEST(TcpStore, Takes_no_answer_of_another_store_for_one_of_its_own) {
  using Parts = std::vector<std::string>;
  const std::pair<Parts, const char*> answers[] = {
      {{"ok", "01"}, ""},
      {{"ok", "0"}, "answers '0'"},
      {{"ok", "012"}, "answers '012'"},
      {{"ok", "09"}, "answers '09'"},
      {{"ok"}, "answers 'ok'"},
      {{"refused", "no reason"}, "answers 'no reason'"}};
  for (const auto& row : answers) {
    const Parts& answer = row.first;  // a lambda takes no structured binding
    const char* const problem = row.second;
    auto listener = Listener::open("127.0.0.1", 0);
    std::jthread store([&] {
      std::vector<Socket> sockets;
      for (int caller = 0; caller < 2; ++caller) {
        sockets.push_back(*listener->accept());
        for (int round = 0; round < 2; ++round) {
          sockets.back().receive();
          const bool is_question = caller == 1 && round == 1;
          sockets.back().send(pack(is_question ? answer : Parts{"ok"}));
        }
      }
      sockets[1].receive();
    });
    auto mine = TcpStore::open({"127.0.0.1", listener->port(), kTestToken}, {1, 2, ""}, Ms(60'000));
    ASSERT_TRUE(mine);
    std::string said;
    try {
      EXPECT_EQ(PeerState::here, (*mine)->presences()[1]);
    } catch (const RuntimeFault& fault) {
      said = fault.what();
    }
    mine->reset();
    EXPECT_THAT(said, HasSubstr(problem));
    EXPECT_EQ(*problem == 0, said.empty()) << said;
  }
}

}  // namespace
}  // namespace zeroproof
