#include "connectors/redis/reply.hpp"

#include <fmt/format.h>
#include <hiredis/read.h>

#include <new>

namespace sluice::redis {

// Called by hiredis, which is C: nothing may throw. Null makes it stop.
struct ReplyReader::Functions {
  static ReplyReader& reader(const redisReadTask* task) {
    return *static_cast<ReplyReader*>(task->privdata);
  }

  // Where the object goes: its parent has made room for it already.
  static Reply* place(const redisReadTask* task) {
    if (task->parent == nullptr) return &(reader(task).root_ = Reply{});
    return &static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
  }

  static void* text(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
    ReplyReader& all = reader(task);
    if (size > all.limits_.bytes - all.bytes_) return nullptr;
    all.bytes_ += size;
    Reply* reply = place(task);
    reply->kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                  : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                     : Reply::Kind::text;
    try {
      reply->text.assign(bytes, size);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return reply;
  }

  static void* array(const redisReadTask* task, int count) noexcept {
    ReplyReader& all = reader(task);
    const auto wanted = static_cast<std::size_t>(count);
    if (count < 0 || wanted > all.limits_.elements - all.elements_) return nullptr;
    all.elements_ += wanted;
    Reply* reply = place(task);
    reply->kind = Reply::Kind::array;
    try {
      reply->elements.resize(wanted);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return reply;
  }

  static void* integer(const redisReadTask* task, long long value) noexcept {
    Reply* reply = place(task);
    reply->kind = Reply::Kind::integer;
    reply->integer = value;
    return reply;
  }

  static void* nil(const redisReadTask* task) noexcept { return place(task); }

  // All objects are parts of root_.
  static void free(void*) noexcept {}

  static redisReplyObjectFunctions* all() {
    static redisReplyObjectFunctions functions = {text, array, integer, nil, free};
    return &functions;
  }
};

ReplyReader::ReplyReader(ReplyLimits limits)
    : limits_(limits), reader_(redisReaderCreateWithFunctions(Functions::all()), redisReaderFree) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
}

ReplyReader::~ReplyReader() = default;

bool ReplyReader::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK)
    error_ = "no memory for a reply";
  return error_.empty();
}

Reply* ReplyReader::next() {
  if (!error_.empty()) return nullptr;
  void* reply = nullptr;
  if (reader_->ridx == -1) elements_ = bytes_ = 0;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    // The only objects that are refused are too large.
    error_ = reader_->err == REDIS_ERR_OOM
                 ? fmt::format("a reply of more than {} elements or {} bytes, or no memory for it",
                               limits_.elements, limits_.bytes)
                 : fmt::format("no reply of a server: {}", reader_->errstr);
    return nullptr;
  }
  if (reply != nullptr) return static_cast<Reply*>(reply);
  if (reader_->len - reader_->pos > limits_.bytes)
    error_ = fmt::format("a reply of more than {} bytes", limits_.bytes);
  return nullptr;
}

}  // namespace sluice::redis
