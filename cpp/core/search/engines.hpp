// The engines. Each searches a group of queries (rows of `queries`, one after the other) and is a
// pure function of the store; `answers` has one element per query, its results already told what
// they want.
#pragma once

#include <span>

#include "kernels/kernels.hpp"
#include "search/request.hpp"
#include "store/store.hpp"

namespace hiernorm {

void search_cascade(const Store& store, const Kernels& kernels, const SearchRequest& request,
                    const float* queries, std::span<Answer> answers);
// One query by as many threads as there are parts; the answer is the same.
void search_cascade_parts(const Store& store, const Kernels& kernels, const SearchRequest& request,
                          const float* query, Answer& answer, std::size_t parts);
void search_paper(const Store& store, const Kernels& kernels, double alpha,
                  const SearchRequest& request, const float* queries, std::span<Answer> answers);
void search_exhaustive(const Store& store, const Kernels& kernels, Metric metric,
                       const SearchRequest& request, const float* queries,
                       std::span<Answer> answers);
void search_flat(const Store& store, const Kernels& kernels, Metric metric,
                  const SearchRequest& request, const float* queries, std::span<Answer> answers);

}  // namespace hiernorm
