// A key's form as text for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sluice/stream/record.hpp"

namespace sluice {

// `form` is what a key extractor of `parts` parts made of a record of this format, or its beginning: fields
// separated by commas; JSON values as JSON. Bytes of a record are unchanged: escape them.
std::string key_text(Format::Kind kind, std::size_t parts, std::string_view form);

}  // namespace sluice
