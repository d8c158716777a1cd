// A server for tests: says what a script answers to each command, and listens on loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "connectors/redis/address.hpp"
#include "connectors/redis/reply.hpp"

namespace sluice::redis::testing_support {

class FakeServer {
 public:
  // Called in the server's thread. The answer as bytes; kClose: end the connection.
  using Script = std::function<std::string(const std::vector<std::string>& command)>;
  static inline const std::string kClose = "close";

  explicit FakeServer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::listen(listener_, 10) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0 ||
        ::pipe(stop_.data()) != 0)
      throw std::runtime_error("no port to listen on");
    port_ = ntohs(at.sin_port);
    thread_ = std::jthread([this] { run(); });
  }

  ~FakeServer() {
    [[maybe_unused]] const ssize_t said = ::write(stop_[1], "x", 1);
    thread_.join();
    for (const auto& [file, reader] : clients_) ::close(file);
    for (const int file : {listener_, stop_[0], stop_[1]}) ::close(file);
  }

  Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  std::string text() const { return text_of(endpoint()); }
  unsigned commands() const { return commands_; }

 private:
  void run() {
    while (true) {
      std::vector<pollfd> files = {{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const auto& [file, reader] : clients_) files.push_back({file, POLLIN, 0});
      ::poll(files.data(), files.size(), -1);
      if (files[0].revents != 0) return;
      if (files[1].revents != 0)
        clients_[::accept(listener_, nullptr, nullptr)] = std::make_unique<ReplyReader>();
      for (std::size_t i = 2; i < files.size(); ++i)
        if (files[i].revents != 0 && !serve(files[i].fd)) {
          ::close(files[i].fd);
          clients_.erase(files[i].fd);
        }
    }
  }

  // Commands have the form of replies.
  bool serve(int file) {
    std::array<char, 4096> piece;
    const ssize_t got = ::recv(file, piece.data(), piece.size(), 0);
    if (got <= 0) return false;
    ReplyReader& reader = *clients_[file];
    reader.feed({piece.data(), static_cast<std::size_t>(got)});
    while (const Reply* command = reader.next()) {
      ++commands_;
      std::vector<std::string> words;
      for (const Reply& word : command->elements) words.push_back(word.text);
      const std::string answer = script_(words);
      if (answer == kClose) return false;
      if (::send(file, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return false;
    }
    return true;
  }

  Script script_;
  int listener_ = -1;
  std::array<int, 2> stop_{};
  std::uint16_t port_ = 0;
  std::atomic<unsigned> commands_ = 0;
  std::map<int, std::unique_ptr<ReplyReader>> clients_;
  std::jthread thread_;
};

}  // namespace sluice::redis::testing_support
