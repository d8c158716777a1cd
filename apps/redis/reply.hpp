// What a command answers. The server's adapter writes it to the client, tests write it down.
//
// A reply is one value; an array or a map announces how many values follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::server {

class Reply {
 public:
  virtual ~Reply() = default;
  virtual void integer(std::int64_t value) = 0;
  virtual void boolean(bool value) = 0;  // RESP2: 1 or 0
  virtual void real(double value) = 0;   // RESP2: text
  virtual void text(std::string_view value) = 0;
  virtual void status(std::string_view value) = 0;  // "OK"
  virtual void null() = 0;
  virtual void array(std::size_t values) = 0;
  virtual void map(std::size_t pairs) = 0;  // RESP2: an array of names and values in turn
  // "ERR ..." or with another code; the first word is the code.
  virtual void error(std::string_view code_and_sentence) = 0;
};

}  // namespace sluice::server
