"""What udfs/src/judging/measures.rs compares with: scikit-learn's measures of nine predicted classes."""

from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score

actual, predicted = [0, 0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 2, 1, 1, 0, 2, 1]
print("confusion", confusion_matrix(actual, predicted).tolist())
print("balanced_accuracy", balanced_accuracy_score(actual, predicted))
print("f1", f1_score(actual, predicted, average="macro"))
