#include "connectors/redis/connection.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>

#include "connectors/redis/commands.hpp"

namespace sluice::redis {
namespace {

// What is read at once: small against the limit of a reply.
constexpr std::size_t kPiece = 64 * 1024;

std::string reason(int error) {
  return std::generic_category().message(error);
}

bool would_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Connection::Connection(Endpoint endpoint, const Settings& settings, Listener& listener,
                       std::uint64_t seed)
    : endpoint_(std::move(endpoint)),
      settings_(settings),
      listener_(listener),
      random_(seed),
      backoff_(settings.first_retry, settings.longest_retry),
      context_(nullptr, redisFree) {}

Connection::~Connection() = default;

int Connection::file() const noexcept {
  return context_ ? context_->fd : -1;
}

bool Connection::ready(TimePoint now) {
  if (state_ == State::open && !busy() && is_stale()) {
    // Servers close connections that are idle, and those that they had before a restart: no
    // failure, if it has ever worked.
    if (answered_)
      close();
    else
      fail(now, "closed the connection");
  }
  return state_ != State::closed || (backoff_.may_try(now) && connect(now));
}

// The server has closed it, or has sent something that nobody has asked for.
bool Connection::is_stale() const {
  char byte;
  return ::recv(file(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || !would_wait(errno);
}

bool Connection::connect(TimePoint now) {
  context_.reset(redisConnectNonBlock(endpoint_.host.c_str(), endpoint_.port));
  if (!context_ || context_->err != 0) {
    fail(now, context_ ? context_->errstr : "no memory");
    return false;
  }
  reader_ = std::make_unique<ReplyReader>(settings_.limits);
  state_ = State::connecting;
  began_ = now;
  if (settings_.password.empty()) return true;
  Commands greeting;
  if (settings_.user.empty())
    greeting.add({"AUTH", settings_.password});
  else
    greeting.add({"AUTH", settings_.user, settings_.password});
  write(greeting[0], {.deadline = now + settings_.timeout});
  greeting_size_ = out_.size();
  return true;
}

void Connection::close() {
  context_.reset();
  reader_.reset();
  state_ = State::closed;
  answered_ = false;
  out_.clear();
  out_sent_ = greeting_size_ = 0;
  sent_ = written_ = 0;
}

void Connection::fail(TimePoint now, std::string_view why) {
  problem_ = fmt::format("{}: {}", text_of(endpoint_), why);
  backoff_.failed(now, random_.next_unit());
  const std::uint64_t sent = sent_;
  std::deque<Pending> pending;
  pending.swap(pending_);
  if (greeting_size_ != 0 && !pending.empty()) pending.pop_front();
  close();
  for (const Pending& each : pending) listener_.lost(each, each.end <= sent);
}

void Connection::write(std::string_view command, Pending whose) {
  assert(state_ != State::closed);
  out_ += command;
  written_ += command.size();
  whose.end = written_;
  pending_.push_back(whose);
}

short Connection::events() const noexcept {
  if (state_ == State::connecting) return POLLOUT;
  const std::size_t may_send = state_ == State::greeting ? greeting_size_ : out_.size();
  return out_sent_ < may_send ? POLLIN | POLLOUT : POLLIN;
}

TimePoint Connection::due() const noexcept {
  const TimePoint answer = pending_.empty() ? TimePoint::max() : pending_.front().deadline;
  return state_ == State::connecting ? std::min(answer, began_ + settings_.connect_timeout)
                                     : answer;
}

void Connection::work(TimePoint now) {
  if (state_ == State::closed || (state_ == State::connecting && !connected(now))) return;
  if (flush(now)) receive(now);
}

bool Connection::connected(TimePoint now) {
  pollfd connecting{file(), POLLOUT, 0};
  if (::poll(&connecting, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(file(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    fail(now, reason(error));
    return false;
  }
  state_ = greeting_size_ != 0 ? State::greeting : State::open;
  return true;
}

bool Connection::flush(TimePoint now) {
  const std::size_t end = state_ == State::greeting ? greeting_size_ : out_.size();
  while (out_sent_ < end) {
    const ssize_t sent = ::send(file(), out_.data() + out_sent_, end - out_sent_, MSG_NOSIGNAL);
    if (sent < 0 && would_wait(errno)) return true;
    if (sent < 0) {
      fail(now, reason(errno));
      return false;
    }
    out_sent_ += static_cast<std::size_t>(sent);
    sent_ += static_cast<std::size_t>(sent);
    listener_.moved(static_cast<std::size_t>(sent), 0);
  }
  if (out_sent_ == out_.size()) {
    out_.clear();
    out_sent_ = 0;
  }
  return true;
}

bool Connection::receive(TimePoint now) {
  std::array<char, kPiece> piece;
  while (true) {
    const ssize_t got = ::recv(file(), piece.data(), piece.size(), 0);
    if (got < 0 && would_wait(errno)) return true;
    if (got <= 0) {
      fail(now, got == 0 ? "closed the connection" : reason(errno));
      return false;
    }
    listener_.moved(0, static_cast<std::size_t>(got));
    reader_->feed({piece.data(), static_cast<std::size_t>(got)});
    while (Reply* reply = reader_->next()) {
      if (pending_.empty()) {
        fail(now, "a reply that nobody asked for");
        return false;
      }
      if (state_ == State::greeting) {
        if (!greeted(*reply, now)) return false;
        continue;
      }
      answered_ = true;
      backoff_.succeeded();
      const Pending whose = pending_.front();
      pending_.pop_front();
      listener_.replied(whose, *reply, endpoint_);
    }
    if (!reader_->error().empty()) {
      fail(now, std::string(reader_->error()));
      return false;
    }
  }
}

// Nothing was sent before the server knows who we are: without that it may do as another user what
// this one must not.
bool Connection::greeted(const Reply& reply, TimePoint now) {
  if (reply.is(Reply::Kind::error)) {
    fail(now, "AUTH: " + reply.text);
    return false;
  }
  pending_.pop_front();
  state_ = State::open;
  greeting_size_ = 0;
  return flush(now);
}

}  // namespace sluice::redis
