#include "sluice/stream/json_key.hpp"

#include <charconv>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr auto kNone = std::string_view::npos;

template <class Integer>
void append_digits(Integer value, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Exponents of up to 18 digits plus a shift of less than 10^18 stay within 64 bits.
constexpr std::size_t kShortExponentDigits = 18;

// Appends `digits` + `delta`. The sum is not negative: digits are more than kShortExponentDigits
// without leading zeros, and |delta| is at most the size of a record.
void append_long_sum(std::string_view digits, std::int64_t delta, std::string& out) {
  const std::size_t begin = out.size();
  out += digits;
  std::int64_t carry = delta;
  for (std::size_t at = out.size(); carry != 0 && at > begin;) {
    --at;
    const std::int64_t sum = out[at] - '0' + carry;
    const std::int64_t digit = (sum % 10 + 10) % 10;
    out[at] = static_cast<char>('0' + digit);
    carry = (sum - digit) / 10;
  }
  if (carry > 0) out.insert(begin, std::to_string(carry));
  out.erase(begin, out.find_first_not_of('0', begin) - begin);
}

// Appends e and `exponent` + `shift`, or nothing when that is 0.
void append_exponent(std::string_view exponent, std::int64_t shift, std::string& out) {
  const bool negative = exponent.starts_with('-');
  exponent.remove_prefix(std::min(exponent.find_first_not_of("+-0"), exponent.size()));
  if (exponent.size() <= kShortExponentDigits) {
    std::int64_t sum = 0;
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), sum);
    sum = (negative ? -sum : sum) + shift;
    if (sum == 0) return;
    out += 'e';
    append_digits(sum, out);
    return;
  }
  out += negative ? "e-" : "e";
  append_long_sum(exponent, negative ? -shift : shift, out);
}

JsonPointer parse_pointer(std::string_view text) {
  JsonPointer pointer;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '/') {
      pointer.tokens.emplace_back();
    } else if (byte != '~') {
      pointer.tokens.back() += byte;
    } else {
      ++at;
      if (at == text.size() || (text[at] != '0' && text[at] != '1'))
        throw BadKey("'" + std::string(text) +
                     "': in a JSON Pointer '~' is written '~0' and a '/' within a name '~1'");
      pointer.tokens.back() += text[at] == '0' ? '~' : '/';
    }
  }
  pointer.text = text;
  return pointer;
}

// What a path of jq (.user.id, .items[0]) or JSONPath ($.user.id, $['user']) is as a pointer.
std::string guessed_pointer(std::string_view path) {
  std::string pointer;
  bool inside = false;  // a name has begun
  for (const char byte : path) {
    if (byte == ',') pointer += byte;
    const bool skipped = byte == '"' || byte == '\'' || (byte == '$' && !inside);
    if (skipped) continue;
    const bool separates = byte == '.' || byte == '/' || byte == '[' || byte == ']' || byte == ',';
    if (!separates && !inside) pointer += '/';
    if (!separates) pointer += byte;
    inside = !separates;
  }
  return pointer;
}

}  // namespace

void append_integer(std::uint64_t magnitude, bool negative, std::string& out) {
  if (magnitude == 0) {
    out += "d0;";
    return;
  }
  int exponent = 0;
  for (; magnitude % 10 == 0; magnitude /= 10) ++exponent;
  out += negative ? "d-" : "d";
  append_digits(magnitude, out);
  if (exponent != 0) {
    out += 'e';
    append_digits(exponent, out);
  }
  out += ';';
}

void append_decimal(std::string_view number, std::string& out) {
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const std::size_t e = number.find_first_of("eE");
  const std::string_view exponent = e == kNone ? std::string_view() : number.substr(e + 1);
  const std::string_view mantissa = number.substr(0, e);
  const std::size_t point = mantissa.find('.');
  const std::string_view fraction =
      point == kNone ? std::string_view() : mantissa.substr(point + 1);
  out += negative ? "d-" : "d";
  const std::size_t begin = out.size();
  out += mantissa.substr(0, point);
  out += fraction;
  const std::size_t first = out.find_first_not_of('0', begin);
  if (first == std::string::npos) {
    out.resize(begin - (negative ? 2 : 1));
    out += "d0;";
    return;
  }
  out.erase(begin, first - begin);
  const std::size_t end = out.find_last_not_of('0') + 1;
  const auto zeros = static_cast<std::int64_t>(out.size() - end);
  out.resize(end);
  append_exponent(exponent, zeros - static_cast<std::int64_t>(fraction.size()), out);
  out += ';';
}

std::vector<JsonPointer> parse_json_pointers(std::string_view key) {
  if (!key.empty() && key.front() != '/') {
    const std::string guess = guessed_pointer(key);
    throw BadKey("'" + std::string(key) + "' is not a JSON Pointer, which begins with '/'" +
                 (guess.empty() ? "" : ": did you mean '" + guess + "'?"));
  }
  std::vector<JsonPointer> pointers;
  while (true) {
    const std::size_t comma = key.find(",/");
    pointers.push_back(parse_pointer(key.substr(0, comma)));
    if (comma == kNone) return pointers;
    key.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> parse_json_index(std::string_view token) {
  if (token.empty() || (token.size() > 1 && token.front() == '0')) return {};
  std::size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  if (error != std::errc() || stop != end) return {};
  return index;
}

std::optional<std::string_view> json_scalar_text(std::string_view form) {
  const char kind = form.empty() ? '\0' : form.front();
  if (kind == 'd') return form.substr(1, form.size() - 2);
  if (kind != 's') return std::nullopt;
  form.remove_prefix(1);
  return take_part(form);
}

}  // namespace sluice
