// Where servers are, as people write it:
//
//   redis://[user@]host:port[,host:port...]/name            servers that know nothing of each other
//   redis+cluster://[user@]host:port[,host:port...]/name    a cluster: some of its nodes are enough
//
// `name` is the filter's. An IPv6 address stands in brackets. A password is never a part of it:
// others see arguments. It comes from a file or from the environment.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::redis {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

// "host:port", as messages and servers write it: IPv6 without brackets.
std::string text_of(const Endpoint& endpoint);
// The reverse, of bytes that anybody may have sent: nothing if it is no host and port.
std::optional<Endpoint> parse_endpoint(std::string_view text);
// The same for a port that stands alone.
std::optional<std::uint16_t> parse_port(std::string_view text);
// What a name or an address of a host may be: letters, digits, '.', '-', '_' and ':', at most 253.
bool is_host(std::string_view text);

struct Address {
  bool cluster = false;
  std::string user;
  std::vector<Endpoint> endpoints;
  std::string name;
};

// Throws BadParameters.
Address parse_address(std::string_view url);

// The first line of a file, without its end. Throws IoError, and BadParameters for a file that is
// empty or too long to be a password's.
std::string password_from_file(const std::string& path);
// Throws BadParameters if the variable is not set.
std::string password_from_environment(const std::string& variable);

}  // namespace sluice::redis
