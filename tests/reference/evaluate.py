"""What tests/slt/evaluate.slt compares with: scikit-learn's LinearRegression on the diabetes data, trained on ages under 50."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

x, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
train = x["age"] < 50
model = LinearRegression().fit(x.loc[train, ["bmi", "s5"]], y[train])
for split, rows in (("test", ~train), ("train", train)):
    fitted = model.predict(x.loc[rows, ["bmi", "s5"]])
    print(split, "r2", round(r2_score(y[rows], fitted), 6))
    print(split, "rmse", round(mean_squared_error(y[rows], fitted) ** 0.5, 6))
    print(split, "mae", round(mean_absolute_error(y[rows], fitted), 6))
