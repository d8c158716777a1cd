#include "connectors/redis/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "sluice/base/error.hpp"

namespace sluice::redis {
namespace {

constexpr std::size_t kLongestHost = 253;  // of a name in DNS
constexpr std::size_t kMostEndpoints = 1000;
constexpr std::size_t kLongestPassword = 4096;
// A name becomes the hash tag of keys: braces would end it early.
constexpr std::size_t kLongestName = 200;

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

[[noreturn]] void refuse(std::string_view url, const std::string& what) {
  throw BadParameters(fmt::format(
      "address '{}': {}; give redis://[user@]host:port/name, or redis+cluster:// with some "
      "of the cluster's nodes, separated by commas",
      url, what));
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return is_plain(c) || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

// "host:port" or "[v6]:port" of an address that a person wrote.
Endpoint endpoint_of(std::string_view url, std::string_view text) {
  const bool brackets = text.starts_with('[');
  const std::size_t end = brackets ? text.find("]:") : text.rfind(':');
  if (end == std::string_view::npos) refuse(url, fmt::format("'{}' has no port", text));
  const std::string_view host = brackets ? text.substr(1, end - 1) : text.substr(0, end);
  const std::string_view port = text.substr(end + (brackets ? 2 : 1));
  if (!is_host(host) || (!brackets && host.find(':') != std::string_view::npos))
    refuse(url, fmt::format("'{}' is no host", host));
  const auto number = parse_port(port);
  if (!number) refuse(url, fmt::format("'{}' is no port from 1 to 65535", port));
  return {std::string(host), *number};
}

}  // namespace

std::string text_of(const Endpoint& endpoint) {
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kLongestHost && std::ranges::all_of(text, [](char c) {
    return is_plain(c) || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  const std::string_view host = text.substr(0, colon);
  if (!port || !is_host(host)) return std::nullopt;
  return Endpoint{std::string(host), *port};
}

Address parse_address(std::string_view url) {
  Address address;
  std::string_view rest = url;
  if (take_prefix(rest, "redis+cluster://"))
    address.cluster = true;
  else if (!take_prefix(rest, "redis://"))
    refuse(url, "it does not begin with redis:// or redis+cluster://");
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) refuse(url, "it has no name of a filter");
  address.name = rest.substr(slash + 1);
  if (!is_name(address.name))
    refuse(url, fmt::format("'{}' is no name of a filter: up to {} letters, digits and .-_:",
                            address.name, kLongestName));
  rest = rest.substr(0, slash);
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    address.user = rest.substr(0, at);
    // The whole text would show the password again.
    if (address.user.find(':') != std::string::npos)
      throw BadParameters(
          "address: it has a password, which others can see in arguments; give the user only, and "
          "the "
          "password in a file or in the environment");
    if (address.user.empty()) refuse(url, "there is no user before '@'");
    rest = rest.substr(at + 1);
  }
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    address.endpoints.push_back(endpoint_of(url, rest.substr(0, comma)));
    if (address.endpoints.size() > kMostEndpoints)
      refuse(url, fmt::format("more than {} servers", kMostEndpoints));
    if (more) rest.remove_prefix(comma + 1);
  }
  return address;
}

std::string password_from_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError("cannot open '" + path + "', the file of the password", errno);
  std::string text(kLongestPassword + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty() || text.size() > kLongestPassword)
    throw BadParameters(
        fmt::format("the first line of '{}' is to be a password of 1 to {} bytes, and has {}", path,
                    kLongestPassword, text.empty() ? "none" : "more"));
  return text;
}

std::string password_from_environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0')
    throw BadParameters(
        fmt::format("the environment variable {} has no password: set it", variable));
  return value;
}

}  // namespace sluice::redis
