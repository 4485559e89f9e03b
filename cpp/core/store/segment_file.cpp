// Lays out the tensors of a segment, and moves entries between them and a store.
#include "store/segment_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "store/store.hpp"

namespace hiernorm {
namespace {

// Norms as rows of numbers: the order of the columns is part of the file format.
constexpr std::array kNormColumns = {&TileNorms::norm,           &TileNorms::major_residual,
                                     &TileNorms::minor_residual, &TileNorms::major_coded,
                                     &TileNorms::minor_coded,    &TileNorms::tail,
                                     &TileNorms::uncoded_tail,   &TileNorms::stage_tail};
constexpr std::array kConeNormColumns = {&ConeNorms::norm, &ConeNorms::tail,
                                         &ConeNorms::view_error};

constexpr std::string_view kMajorCodes = "major_codes";
constexpr std::string_view kMinorCodes = "minor_codes.";
constexpr std::string_view kNorms = "norms";
constexpr std::string_view kCones = "cones_";
constexpr std::string_view kConeNorms = "cone_norms";
constexpr std::string_view kRotation = "rotation";

std::string stage_name(std::size_t stage) { return kMinorCodes.data() + std::to_string(stage); }
std::string cones_name(std::size_t level) {
    return kCones.data() + std::to_string(entries_per_cone(level));
}

TensorLayout coded_blocks(std::string name, std::size_t blocks, std::size_t slots) {
    return {std::move(name), "U8", {blocks, slots / kGroupSlots, kBlockEntries, kGroupSlots}};
}

std::size_t dtype_bytes(std::string_view dtype) {
    if (dtype == "U8") return 1;
    return dtype == "U32" || dtype == "F32" ? 4 : 8;
}

void append(std::vector<TensorLayout>& to, std::vector<TensorLayout> more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The number behind the prefix of a name.
std::size_t number_behind(std::string_view prefix, const std::string& name) {
    return static_cast<std::size_t>(std::stoul(name.substr(prefix.size())));
}

template <class T, class Columns>
T from_columns(const std::byte* row, const Columns& columns) {
    T norms;
    for (const auto column : columns) {
        std::memcpy(&(norms.*column), row, sizeof(double));
        row += sizeof(double);
        if (!std::isfinite(norms.*column)) {
            throw std::invalid_argument("the norms of a segment have values that are not finite");
        }
    }
    return norms;
}

template <class T, class Columns>
std::byte* to_columns(const T& norms, const Columns& columns, std::byte* out) {
    for (const auto column : columns) {
        std::memcpy(out, &(norms.*column), sizeof(double));
        out += sizeof(double);
    }
    return out;
}

}  // namespace

std::size_t TensorLayout::nbytes() const {
    return std::accumulate(shape.begin(), shape.end(), dtype_bytes(dtype), std::multiplies<>());
}

std::vector<TensorLayout> chunk_tensors(const Encoding& encoding, std::size_t entries) {
    std::vector<TensorLayout> tensors;
    tensors.push_back(coded_blocks(std::string(kMajorCodes), blocks_of(entries), encoding.slots()));
    for (std::size_t s = 0; s < encoding.stages.size(); ++s) {
        // Kernels read kStageBytes from the start of the last row too.
        tensors.push_back({stage_name(s), "U8", {entries, encoding.stages[s].bytes}, kStageBytes});
    }
    tensors.push_back({std::string(kNorms), "F64", {tiles_of(entries), kNormColumns.size()}});
    return tensors;
}

std::vector<TensorLayout> cone_tensors(const Encoding& encoding, std::size_t entries) {
    std::vector<TensorLayout> tensors;
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        tensors.push_back(coded_blocks(cones_name(level),
                                       divide_up(entries, entries_per_cone(level + 1)),
                                       cone_layout(encoding).slots()));
    }
    tensors.push_back({std::string(kConeNorms), "F64", {kConeNormColumns.size()}});
    return tensors;
}

std::vector<TensorLayout> segment_tensors(std::size_t dim, std::size_t entries,
                                          const Encoding* encoding, bool cones) {
    std::vector<TensorLayout> tensors;
    if (encoding != nullptr) {
        append(tensors, chunk_tensors(*encoding, entries));
        if (cones) append(tensors, cone_tensors(*encoding, entries));
        if (encoding->rotated()) tensors.push_back({std::string(kRotation), "F32", {dim, dim}});
    }
    tensors.push_back({"sorted_ids", "I64", {entries}});
    tensors.push_back({"sorted_positions", "U32", {entries}});
    tensors.push_back({"ids", "I64", {entries}});
    tensors.push_back({"rows", "F32", {entries, dim}});
    return tensors;
}

void copy_chunk_tensor(const TensorLayout& tensor, const Encoding& encoding, const Chunk& chunk,
                       std::size_t entries, std::byte* out) {
    if (entries > chunk.ids.capacity()) throw std::out_of_range("the chunk has fewer entries");
    if (tensor.name == kMajorCodes) {
        std::memcpy(out, chunk.major_codes.data(),
                    blocks_of(entries) * kBlockEntries * encoding.slots());
    } else if (tensor.name == kNorms) {
        for (std::size_t tile = 0; tile < tiles_of(entries); ++tile) {
            out = to_columns(chunk.tiles[tile], kNormColumns, out);
        }
    } else {
        const std::size_t stage = number_behind(kMinorCodes, tensor.name);
        std::memcpy(out, chunk.stage_codes[stage].data(), entries * encoding.stages[stage].bytes);
    }
}

void copy_cone_tensor(const TensorLayout& tensor, const Cells& cells, std::size_t entries,
                      std::byte* out) {
    if (tensor.name == kConeNorms) {
        to_columns(cells.norms(), kConeNormColumns, out);
        return;
    }
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        if (tensor.name != cones_name(level)) continue;
        cells.copy_cones(level, entries, reinterpret_cast<std::uint8_t*>(out));
    }
}

void copy_tensor(const TensorLayout& tensor, const Store& store, std::byte* out) {
    const Encoding& encoding = store.encoding();
    if (tensor.name.starts_with("cone")) {
        return copy_cone_tensor(tensor, store.cells(), store.size(), out);
    }
    if (tensor.name == kRotation) {
        std::memcpy(out, encoding.rotation.data(), tensor.nbytes());
        return;
    }
    for (std::size_t c = 0; c < store.chunks(); ++c) {
        const Chunk& chunk = store.chunk(c);
        const std::size_t entries = store.chunk_entries(c);
        if (tensor.name == "ids") {
            std::memcpy(out, chunk.ids.data(), entries * sizeof(std::int64_t));
            out += entries * sizeof(std::int64_t);
        } else if (tensor.name == "rows") {
            std::memcpy(out, chunk.rows.data(), entries * store.dim() * sizeof(float));
            out += entries * store.dim() * sizeof(float);
        } else {
            copy_chunk_tensor(tensor, encoding, chunk, entries, out);
            for (const TensorLayout& part : chunk_tensors(encoding, entries)) {
                if (part.name == tensor.name) out += part.nbytes();
            }
        }
    }
}

SegmentArrays arrays_of(const NamedTensors& tensors, std::size_t dim, std::size_t entries,
                        const Encoding* encoding, const NamedChecks& checks) {
    const bool cones = tensors.contains(cones_name(0));
    for (const TensorLayout& tensor : segment_tensors(dim, entries, encoding, cones)) {
        // What only the table of ids and the encoding need is not the store's to read.
        if (tensor.name.starts_with("sorted_") || tensor.name == kRotation) continue;
        const auto found = tensors.find(tensor.name);
        if (found == tensors.end() || found->second.size() != tensor.nbytes() + tensor.beyond) {
            throw std::invalid_argument("the tensor '" + tensor.name +
                                        "' of a segment has not the size that its encoding gives");
        }
        const auto address = reinterpret_cast<std::uintptr_t>(found->second.data());
        if (address % dtype_bytes(tensor.dtype) != 0) {
            throw std::invalid_argument("the tensor '" + tensor.name +
                                        "' of a segment is not aligned");
        }
    }
    const auto at = [&](std::string_view name) { return tensors.find(name)->second.data(); };
    const auto codes = [&](std::string_view name) {
        return reinterpret_cast<const std::uint8_t*>(at(name));
    };
    const auto check_of = [&](std::string_view name) -> const BlockChecks* {
        const auto found = checks.find(name);
        return found == checks.end() ? nullptr : found->second;
    };
    const auto require = [&](std::string_view name) {
        if (const BlockChecks* check = check_of(name)) check->require_all();
    };
    SegmentArrays arrays;
    arrays.entries = entries;
    arrays.checks.ids = check_of("ids");
    arrays.checks.rows = check_of("rows");
    arrays.ids = reinterpret_cast<const std::int64_t*>(at("ids"));
    arrays.rows = reinterpret_cast<const float*>(at("rows"));
    if (encoding == nullptr) return arrays;
    arrays.major_codes = codes(kMajorCodes);
    arrays.checks.major_codes = check_of(kMajorCodes);
    for (std::size_t s = 0; s < encoding->stages.size(); ++s) {
        arrays.stage_codes.push_back(codes(stage_name(s)));
        arrays.checks.stage_codes.push_back(check_of(stage_name(s)));
    }
    require(kNorms);
    const std::byte* row = at(kNorms);
    for (std::size_t tile = 0; tile < tiles_of(entries); ++tile) {
        arrays.tiles.push_back(from_columns<TileNorms>(row, kNormColumns));
        row += kNormColumns.size() * sizeof(double);
    }
    if (!cones) return arrays;
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        arrays.cones[level] = codes(cones_name(level));
        arrays.checks.cones.push_back(check_of(cones_name(level)));
    }
    require(kConeNorms);
    arrays.cone_norms = from_columns<ConeNorms>(at(kConeNorms), kConeNormColumns);
    return arrays;
}

}  // namespace hiernorm
